"""Content-addressed graph of a conversation, as the Cursor CLI and the IDE store it.

The id of a blob is its SHA-256. A root contains the ids of the messages for the model
and of the turns for the user, in order.
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
    split_turns,
    thinking_text,
    turn_prompts,
)
from backscroll.testing.protobuf import Field, encode_map_entry, encode_message, fixed32, fixed64

Turns: TypeAlias = Literal["new", "old", "none"]

# Field number of the call in a tool step, by tool name.
_CALL_FIELDS = {
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
    """Blobs by hex id, the current root and the ids of earlier roots."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    root: bytes = b""
    older_roots: list[str] = field(default_factory=list)

    def put(self, data: bytes) -> bytes:
        """Store a blob and return its id. The same content is stored once."""
        id = sha256(data).digest()
        self.blobs[id.hex()] = data
        return id

    @property
    def root_id(self) -> str:
        return sha256(self.root).hexdigest()

    @property
    def state(self) -> str:
        """The root as text, as the IDE stores it in the record of a session."""
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
    has_separate_text: bool = False,
    has_unknown_fields: bool = False,
) -> Graph:
    """Build the graph of a conversation. It also contains the roots of earlier turns.

    ``compacted`` is the number of messages that were moved to an archive and replaced by
    ``summary``. ``paths`` are the files that the assistant read. ``pending`` is a
    message with a tool call that has no result yet.
    """
    graph = Graph()
    paths = [f"{folder}/cart.py"] if paths is None else paths
    prompt_ids = (
        [graph.put(dumps(prompt).encode()) for prompt in opening_prompts(folder)] if has_prompts else []
    )
    turn_ids: list[bytes] = []
    timings: list[bytes] = []
    position = 0
    for turn in split_turns(messages):
        turn_times = times[position : position + len(turn)]
        position += len(turn)
        before = graph.put(
            _encode_root(
                prompt_ids,
                turn_ids,
                timings,
                turn_shape=turn_shape,
                is_timed=is_timed,
                folder=folder,
                paths=paths,
            )
        )
        graph.older_roots.append(before.hex())
        if has_prompts:
            prompt_ids += [graph.put(dumps(prompt).encode()) for prompt in turn_prompts(turn, style=style)]
        node = _encode_turn(
            graph, turn, turn_times, before=before, is_timed=is_timed, has_separate_text=has_separate_text
        )
        turn_ids.append(graph.put(node if turn_shape == "old" else encode_message((1, node))))
        timings.append(encode_message((1, turn_times[-1] - turn_times[0]), (2, turn_times[0])))
    extra: list[Field] = []
    if compacted:
        prompt_ids, archive = _compact(graph, prompt_ids, compacted, summary)
        extra.append((archive_field, archive))
        extra.append((17, 1))
    if pending is not None:
        extra.append((4, dumps(assistant_prompt([pending]))))
    for name, child in (subagents or {}).items():
        graph.blobs |= child.blobs
        extra.append(
            (subagent_field, encode_map_entry(name, _encode_subagent(graph, child, subagent_field, times)))
        )
    root_prompts: list[Any] = [graph.blobs[id.hex()] for id in prompt_ids] if is_inline else prompt_ids
    graph.root = _encode_root(
        root_prompts,
        turn_ids,
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


def _encode_root(
    prompt_ids: Sequence[bytes],
    turn_ids: Sequence[bytes],
    timings: Sequence[bytes],
    *,
    turn_shape: Turns,
    is_timed: bool,
    folder: str,
    paths: Sequence[str],
    extra: Sequence[Field] = (),
    start: Sequence[int] = (),
) -> bytes:
    """Encode a root. Fields are sorted by number and repeated fields are adjacent, as Cursor writes them."""
    parts = (encode_message((1, "conversation"), (2, "Conversation"), (3, 300)),)
    breakdown = encode_message((1, 300), (2, 200000), *((3, part) for part in parts))
    fields: list[Field] = [(1, id) for id in prompt_ids]
    if turn_shape == "old":
        fields += [(2, id) for id in turn_ids]
    fields.append((5, encode_message((1, 300), (2, 200000), (3, breakdown))))
    if turn_shape == "new":
        fields += [(8, id) for id in turn_ids]
    fields += [(9, f"file://{folder}"), (10, 1)]
    fields += [(12, encode_map_entry(path, "unchanged")) for path in paths]
    if is_timed and turn_shape == "new":
        fields += [(14, timing) for timing in timings]
    fields += [(18, path) for path in paths]
    if is_timed and start:
        fields += [(26, start[0]), (27, "Europe/Paris")]
    fields += extra
    return encode_message(*sorted(fields, key=lambda pair: pair[0]))


def _encode_turn(
    graph: Graph,
    turn: Sequence[Message],
    turn_times: Sequence[int],
    *,
    before: bytes,
    is_timed: bool,
    has_separate_text: bool,
) -> bytes:
    fields: list[Field] = []
    for item, at in zip(turn, turn_times, strict=True):
        if item.role == "user":
            text: Field = (1, item.text)
            if has_separate_text:
                text = (18, graph.put(item.text.encode()))
            parts: list[Field] = [text, (2, item.id or ""), (4, 1), (5, int(item.is_simulated)), (10, before)]
            if is_timed:
                parts.append((25, at))
            fields.append((1, graph.put(encode_message(*sorted(parts, key=lambda pair: pair[0])))))
        else:
            fields += [(2, graph.put(step)) for step in _encode_steps(item, at, is_timed)]
    fields.append((3, f"req-{turn[0].id}"))
    return encode_message(*fields)


def _encode_steps(item: Message, at: int, is_timed: bool) -> list[bytes]:
    steps = []
    if item.thinking is not None:
        steps.append(encode_message((3, encode_message((1, thinking_text(item.thinking)), (2, 850)))))
    if item.text:
        stamp: list[Field] = [(2, at)] if is_timed else []
        steps.append(encode_message((1, encode_message((1, item.text), *stamp))))
    if item.tool is not None:
        steps.append(encode_message((2, _encode_call(item.tool, at, is_timed))))
    return steps


def _encode_call(tool: Tool, at: int, is_timed: bool) -> bytes:
    args = encode_message(
        *((number, str(value)) for number, value in enumerate(tool.params.values(), start=1))
    )
    payload: list[Field] = [(1, args)]
    if tool.result is not None:
        text = tool.result if isinstance(tool.result, str) else dumps(tool.result)
        payload.append((2, encode_message((1, encode_message((1, text))))))
    fields: list[Field] = [
        (_CALL_FIELDS.get(tool.name, 15), encode_message(*payload)),
        (57, tool.call_id or ""),
    ]
    if is_timed:
        fields += [(59, at), (60, at + 800)]
    return encode_message(*fields)


def _compact(graph: Graph, prompt_ids: Sequence[bytes], count: int, text: str) -> tuple[list[bytes], bytes]:
    """Move messages from the root to an archive and replace them with a summary."""
    opening, moved, kept = list(prompt_ids[:2]), prompt_ids[2 : 2 + count], prompt_ids[2 + count :]
    summary = {
        "role": "user",
        "content": [{"type": "text", "text": f"<conversation_summary>\n{text}\n</conversation_summary>"}],
    }
    summary_id = graph.put(dumps(summary).encode())
    archive = graph.put(encode_message(*((1, id) for id in moved), (2, text), (3, 0), (4, summary_id)))
    return [*opening, summary_id, *kept], archive


def _encode_subagent(graph: Graph, child: Graph, field_number: int, times: Sequence[int]) -> bytes:
    state = encode_message((1, child.root), (2, times[0]), (3, times[-1]), (4, "explore"))
    return state if field_number == 16 else graph.put(state)
