"""The content-addressed graph of a conversation, as the command line and the editor both keep it.

Every blob is named by its SHA-256. A root names the messages the model sees, in
order, and the turns the person sees.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.messages import Message, Tool
from backscroll.testing.cursor.prompt_messages import (
    Style,
    assistant_prompt,
    opening_prompts,
    prompts,
    thought,
    turns,
)
from backscroll.testing.protobuf import Field, encode_map_entry, encode_message, fixed32, fixed64

__all__ = ["Graph", "Turns", "build_graph"]

Turns: TypeAlias = Literal["new", "old", "none"]

# Which field of a tool step holds a call, by what the tool is called.
_STEPS = {
    "Shell": 1,
    "Delete": 3,
    "Glob": 4,
    "Grep": 5,
    "rg": 5,
    "Read": 8,
    "TodoWrite": 9,
    "Write": 12,
    "StrReplace": 12,
    "Edit": 12,
    "ApplyPatch": 12,
    "LS": 13,
    "ReadLints": 14,
    "CallMcpTool": 15,
    "SemanticSearch": 16,
    "CreatePlan": 17,
    "WebSearch": 18,
    "Task": 19,
    "Subagent": 19,
    "AskQuestion": 23,
    "SwitchMode": 25,
    "WebFetch": 37,
    "AwaitShell": 42,
}


@dataclass
class Graph:
    """Blobs by their hex id, the root that counts, and the roots of earlier turns."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    root: bytes = b""
    older: list[str] = field(default_factory=list)

    def put(self, data: bytes) -> bytes:
        """Keep a blob; the same content is kept once. Returns its id."""
        id = sha256(data).digest()
        self.blobs[id.hex()] = data
        return id

    @property
    def root_id(self) -> str:
        return sha256(self.root).hexdigest()

    @property
    def state(self) -> str:
        """The root as the editor keeps it, inside a session's own record."""
        return f"~{b64encode(self.root).decode()}"


def build_graph(
    messages: Sequence[Message],
    times: Sequence[int],
    *,
    folder: str = "/home/dev/shop",
    turn_shape: Turns = "new",
    style: Style = "parts",
    has_prompts: bool = True,
    is_inline: bool = False,
    compacted: int = 0,
    summary: str = "Earlier, the basket totals were looked into.",
    paths: Sequence[str] | None = None,
    archive_field: Literal[11, 13] = 13,
    pending: Message | None = None,
    subagents: Mapping[str, "Graph"] | None = None,
    subagent_field: Literal[16, 31] = 16,
    is_timed: bool = True,
    keeps_text_apart: bool = False,
    has_unknown_fields: bool = False,
) -> Graph:
    """The graph of a conversation, with the roots of its earlier turns left in it.

    ``compacted`` is how many of the model's messages were summarised away into
    an archive, and ``summary`` what stands in their place. ``paths`` are the files
    that were read. ``pending`` is an answer whose tool has not returned.
    """
    graph = Graph()
    paths = [f"{folder}/cart.py"] if paths is None else paths
    seen = [graph.put(dumps(prompt).encode()) for prompt in opening_prompts(folder)] if has_prompts else []
    nodes: list[bytes] = []
    timings: list[bytes] = []
    place = 0
    for turn in turns(messages):
        clock = times[place : place + len(turn)]
        place += len(turn)
        before = graph.put(
            _root(seen, nodes, timings, turn_shape=turn_shape, is_timed=is_timed, folder=folder, paths=paths)
        )
        graph.older.append(before.hex())
        if has_prompts:
            seen += [graph.put(dumps(prompt).encode()) for prompt in prompts(turn, style=style)]
        node = _turn(graph, turn, clock, before=before, is_timed=is_timed, keeps_text_apart=keeps_text_apart)
        nodes.append(graph.put(node if turn_shape == "old" else encode_message((1, node))))
        timings.append(encode_message((1, clock[-1] - clock[0]), (2, clock[0])))
    extra: list[Field] = []
    if compacted:
        seen, archive = _compact(graph, seen, compacted, summary)
        extra.append((archive_field, archive))
        extra.append((17, 1))
    if pending is not None:
        extra.append((4, dumps(assistant_prompt([pending]))))
    for name, child in (subagents or {}).items():
        graph.blobs |= child.blobs
        extra.append((subagent_field, encode_map_entry(name, _subagent(graph, child, subagent_field, times))))
    shown: list[Any] = [graph.blobs[id.hex()] for id in seen] if is_inline else seen
    graph.root = _root(
        shown,
        nodes,
        timings,
        turn_shape=turn_shape,
        is_timed=is_timed,
        folder=folder,
        paths=paths,
        extra=extra,
        start=times[:1],
    )
    if has_unknown_fields:
        graph.root += fixed32(60, 7) + fixed64(61, 7) + encode_message((62, "later"), (63, 1))
    graph.put(graph.root)
    return graph


def _root(
    seen: Sequence[bytes],
    nodes: Sequence[bytes],
    timings: Sequence[bytes],
    *,
    turn_shape: Turns,
    is_timed: bool,
    folder: str,
    paths: Sequence[str],
    extra: Sequence[Field] = (),
    start: Sequence[int] = (),
) -> bytes:
    """Fields in the order of their numbers, repeated ones together, as Cursor itself writes them."""
    parts = (encode_message((1, "conversation"), (2, "Conversation"), (3, 300)),)
    breakdown = encode_message((1, 300), (2, 200000), *((3, part) for part in parts))
    fields: list[Field] = [(1, id) for id in seen]
    if turn_shape == "old":
        fields += [(2, id) for id in nodes]
    fields.append((5, encode_message((1, 300), (2, 200000), (3, breakdown))))
    if turn_shape == "new":
        fields += [(8, id) for id in nodes]
    fields += [(9, f"file://{folder}"), (10, 1)]
    fields += [(12, encode_map_entry(path, "unchanged")) for path in paths]
    if is_timed and turn_shape == "new":
        fields += [(14, timing) for timing in timings]
    fields += [(18, path) for path in paths]
    if is_timed and start:
        fields += [(26, start[0]), (27, "Europe/Paris")]
    fields += extra
    return encode_message(*sorted(fields, key=lambda pair: pair[0]))


def _turn(
    graph: Graph,
    turn: Sequence[Message],
    clock: Sequence[int],
    *,
    before: bytes,
    is_timed: bool,
    keeps_text_apart: bool,
) -> bytes:
    fields: list[Field] = []
    for said, at in zip(turn, clock, strict=True):
        if said.role == "user":
            text: Field = (1, said.text)
            if keeps_text_apart:
                text = (18, graph.put(said.text.encode()))
            parts: list[Field] = [text, (2, said.id or ""), (4, 1), (5, int(said.is_simulated)), (10, before)]
            if is_timed:
                parts.append((25, at))
            fields.append((1, graph.put(encode_message(*sorted(parts, key=lambda pair: pair[0])))))
        else:
            fields += [(2, graph.put(step)) for step in _steps(said, at, is_timed)]
    fields.append((3, f"req-{turn[0].id}"))
    return encode_message(*fields)


def _steps(said: Message, at: int, is_timed: bool) -> list[bytes]:
    steps = []
    if said.thinking is not None:
        steps.append(encode_message((3, encode_message((1, thought(said.thinking)), (2, 850)))))
    if said.text:
        stamp: list[Field] = [(2, at)] if is_timed else []
        steps.append(encode_message((1, encode_message((1, said.text), *stamp))))
    if said.tool is not None:
        steps.append(encode_message((2, _call(said.tool, at, is_timed))))
    return steps


def _call(tool: Tool, at: int, is_timed: bool) -> bytes:
    args = encode_message(*((place, str(value)) for place, value in enumerate(tool.params.values(), start=1)))
    payload: list[Field] = [(1, args)]
    if tool.result is not None:
        text = tool.result if isinstance(tool.result, str) else dumps(tool.result)
        payload.append((2, encode_message((1, encode_message((1, text))))))
    fields: list[Field] = [(_STEPS.get(tool.name, 15), encode_message(*payload)), (57, tool.call_id or "")]
    if is_timed:
        fields += [(59, at), (60, at + 800)]
    return encode_message(*fields)


def _compact(graph: Graph, seen: Sequence[bytes], count: int, told: str) -> tuple[list[bytes], bytes]:
    """Move messages out of the root into an archive, and put a summary in their place."""
    opening, moved, kept = list(seen[:2]), seen[2 : 2 + count], seen[2 + count :]
    summary = {
        "role": "user",
        "content": [{"type": "text", "text": f"<conversation_summary>\n{told}\n</conversation_summary>"}],
    }
    summary_id = graph.put(dumps(summary).encode())
    archive = graph.put(encode_message(*((1, id) for id in moved), (2, told), (3, 0), (4, summary_id)))
    return [*opening, summary_id, *kept], archive


def _subagent(graph: Graph, child: Graph, number: int, times: Sequence[int]) -> bytes:
    state = encode_message((1, child.root), (2, times[0]), (3, times[-1]), (4, "explore"))
    return state if number == 16 else graph.put(state)
