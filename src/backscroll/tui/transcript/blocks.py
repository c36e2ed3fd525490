"""A session as blocks to read: prompts and answers open, calls, thinking and subagents folded to a line."""

from collections.abc import Iterator
from itertools import islice
from typing import Literal

from msgspec import Struct

from backscroll.model import Edit, Message, SessionSummary
from backscroll.model.sanitize import one_line, sanitize
from backscroll.render.annotations import annotation_lines
from backscroll.render.diffs import diff_lines
from backscroll.render.session_header import (
    attachment_label,
    format_time,
    header_fields,
    session_title,
    speaker_label,
)
from backscroll.render.tool_calls import argument_lines, call_outcome, describe_call
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

__all__ = ["Block", "Kind", "Place", "Teller", "Tone", "body_of", "front"]

Kind = Literal["front", "prompt", "answer", "thinking", "call", "agent", "trouble"]
Tone = Literal["title", "fact", "prompt", "plain", "strong", "code", "dim", "added", "removed", "trouble"]
Place = tuple[str, int]  # a session's or subagent's ref, and the position of a message in it

_LABEL = 400  # characters of a head that anybody could see
_THOUGHT = 120
_COUNTED = ("Messages", "Tokens", "Lines changed")  # facts that say little without their name
_FOLDED: tuple[Kind, ...] = ("thinking", "call", "agent")


class Block(Struct, frozen=True):
    """Something to read. Its body is None when it is only read once somebody wants to see it."""

    kind: Kind
    place: Place
    depth: int = 0  # of subagents around it
    turn: int = 0
    head: str = ""
    aside: str = ""  # at the right of the head
    is_failed: bool = False
    is_dim: bool = False  # on an abandoned branch
    body: tuple[tuple[str, Tone], ...] | None = ()

    @property
    def is_foldable(self) -> bool:
        return self.kind in _FOLDED


def front(summary: SessionSummary) -> Block:
    """What stands before the first message."""
    known = dict(header_fields(summary))
    ref = known.pop("Session")
    words = [f"{value} {name.lower()}" if name in _COUNTED else value for name, value in known.items()]
    told: list[tuple[str, Tone]] = [(session_title(summary), "title")]
    told += [(" · ".join(words), "fact"), (ref, "fact")]
    told += [(line, "plain") for line in annotation_lines(summary)]
    return Block("front", (summary.ref, -1), body=tuple(told))


class Teller:
    """Makes blocks of what is told of a session, one after the other."""

    def __init__(self, summary: SessionSummary, *, is_full: bool = False) -> None:
        self._refs = [summary.ref]
        self._base = f"{summary.workspace_path.rstrip('/')}/" if summary.workspace_path else None
        self._is_full = is_full

    def tell(self, event: TranscriptItem) -> Block | None:
        """The block of an event; a subagent's end has none."""
        match event:
            case SubagentStart(summary):
                self._refs.append(summary.ref)
                number = summary.message_count
                return Block(
                    "agent",
                    (summary.ref, -1),
                    depth=len(self._refs) - 2,
                    head=f"Subagent  {session_title(summary)}",
                    aside="1 message" if number == 1 else f"{number:,} messages",
                )
            case SubagentEnd():
                self._refs.pop()
                return None
            case MessageItem():
                return self._said(event)

    def _said(self, said: MessageItem) -> Block:
        message, depth = said.message, len(self._refs) - 1
        kind = _kind(message)
        head, aside = _head(message, self._base, is_agent=depth > 0)
        is_lazy = kind == "call" and not self._is_full
        return Block(
            kind,
            (self._refs[-1], said.position),
            depth=depth,
            turn=said.turn if depth == 0 else 0,
            head=head,
            aside=aside,
            is_failed=message.tool is not None and message.tool.status == "failed",
            is_dim=not message.is_active,
            body=None if is_lazy else body_of(message),
        )


def _kind(message: Message) -> Kind:
    if message.tool is not None:
        return "call"
    match message.role:
        case "user":
            return "prompt"
        case "thinking":
            return "thinking"
        case "error":
            return "trouble"
        case _:
            return "answer"


def _head(message: Message, base: str | None, *, is_agent: bool) -> tuple[str, str]:
    """What stands above a body, and at the right of it; paths below ``base`` are told from there on."""
    is_inferred = message.timestamp_source not in (None, "stored")
    at = format_time(message.timestamp, is_inferred=is_inferred)
    tool = message.tool
    if tool is not None:
        words = (one_line(tool.name, 100), describe_call(tool, _LABEL).removeprefix(base or ""))
        return "  ".join(word for word in words if word), call_outcome(tool)
    if message.role == "thinking":
        return f"Thinking  {one_line(message.content, _THOUGHT)}", ""
    if message.role == "assistant" and message.kind is None and message.is_active:
        return "", ""
    return speaker_label(message, is_agent=is_agent), at


def body_of(message: Message) -> tuple[tuple[str, Tone], ...]:
    """Everything of a message in lines."""
    return tuple(_body(message))


def _body(message: Message) -> Iterator[tuple[str, Tone]]:
    tool = message.tool
    plain: Tone = {"user": "prompt", "thinking": "dim", "error": "trouble"}.get(message.role, "plain")  # type: ignore[assignment]
    if message.content.strip():
        yield from _prose(message.content, plain)
    if tool is not None:
        changed = [line for edit in tool.edits for line in _diff(edit, is_only=len(tool.edits) == 1)]
        yield from ((_flat(line), _diff_tone(line)) for line in changed)
        if not changed:
            yield from ((_flat(line), "plain") for line in argument_lines(tool))
        if tool.result:
            tone: Tone = "trouble" if tool.status == "failed" else "dim"
            lines = sanitize(tool.result).removesuffix("\n").split("\n")
            yield from ((_flat(line), tone) for line in lines)
    yield from ((f"[{attachment_label(one)}]", "dim") for one in message.attachments)


def _prose(text: str, plain: Tone) -> Iterator[tuple[str, Tone]]:
    """Lines of Markdown, told apart as far as a screen of text shows it; nothing of them is changed."""
    fence = ""
    for line in sanitize(text).strip("\n").split("\n"):
        mark = line.lstrip(" >")
        if fence:
            if mark.startswith(fence) and not mark.strip(fence[0]).strip():
                fence = ""
            yield _flat(line), "code"
        elif mark.startswith(("```", "~~~")):
            fence = mark[: len(mark) - len(mark.lstrip(mark[0]))]
            yield _flat(line), "code"
        elif mark.startswith("#") and mark.lstrip("#").startswith(" "):
            yield _flat(line), "strong"
        else:
            yield _flat(line), plain


def _flat(line: str) -> str:
    return line.expandtabs(4) if "\t" in line else line


def _diff(edit: Edit, *, is_only: bool) -> Iterator[str]:
    """The lines of an edit; the name of the file only where there are several, as the head has the one."""
    return islice(diff_lines(edit), 2 if is_only else 0, None)


def _diff_tone(line: str) -> Tone:
    if line.startswith(("--- ", "+++ ", "@@")):
        return "fact"
    return "added" if line.startswith("+") else "removed"
