"""A session as blocks: prompts and answers are expanded; calls, thinking and subagents can be folded.

Blocks are loaded in batches: a first screen at once, then growing ones.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

from msgspec import Struct

from backscroll.history.history import History
from backscroll.model.message import Edit, Message
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.annotations import annotation_lines
from backscroll.render.session_header import (
    attachment_label,
    format_time,
    header_fields,
    session_title,
    speaker_label,
)
from backscroll.render.tool_calls import argument_lines, call_outcome, describe_call, diff_lines
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

Kind = Literal["header", "prompt", "answer", "thinking", "call", "subagent", "error"]
StyleName = Literal[
    "title", "detail", "prompt", "plain", "strong", "code", "dim", "added", "removed", "error"
]
Body = tuple[tuple[str, StyleName], ...]  # lines with their styles
Location = tuple[str, int]  # ref of a session or subagent; position of a message in it, or -1 for its start
FIRST_BATCH_SIZE = 60  # blocks; more than a screen shows
MAX_BATCH_SIZE = 2000
MAX_CALL_CHARS = 400
MAX_TOOL_NAME_CHARS = 100
MAX_THINKING_CHARS = 120
LABELED_FIELDS = ("Messages", "Tokens", "Lines changed")  # header fields that are unclear without a label
FOLDABLE_KINDS: tuple[Kind, ...] = ("thinking", "call", "subagent")


class Block(Struct, frozen=True):
    """A message, the start of a subagent, or the header of the session."""

    kind: Kind
    location: Location
    depth: int = 0  # number of enclosing subagents
    turn: int = 0
    heading: str = ""
    right_label: str = ""  # at the right end of the heading
    is_failed: bool = False
    is_dim: bool = False  # on an abandoned branch
    body: Body | None = ()  # None: loaded when the block is expanded

    @property
    def is_foldable(self) -> bool:
        return self.kind in FOLDABLE_KINDS


TakeBatch = Callable[[SessionSummary, list[Block]], bool]  # returns whether to continue


def load_blocks(
    history: History, ref: str, take_batch: TakeBatch, *, with_call_bodies: bool = False
) -> SessionSummary:
    """Pass the blocks of a session to `take_batch` until it returns False. Return the session.

    The ref of a subagent loads the session that it belongs to. Raises `SessionNotFoundError` if there is no
    such session.
    """
    summary = history.find(ref)
    if summary.parent_ref is not None:
        summary = history.find(summary.parent_ref)
    blocks = _blocks(history, summary, with_call_bodies=with_call_bodies)
    size = FIRST_BATCH_SIZE
    while batch := list(islice(blocks, size)):
        if not take_batch(summary, batch):
            break
        size = min(size * 2, MAX_BATCH_SIZE)
    return summary


def _blocks(history: History, summary: SessionSummary, *, with_call_bodies: bool) -> Iterator[Block]:
    yield _header_block(summary)
    builder = _BlockBuilder(summary, with_call_bodies=with_call_bodies)
    for item in history.transcript.read(summary):
        if (block := builder.build(item)) is not None:
            yield block


def load_body(history: History, location: Location) -> Body | None:
    """Return the body of one message, or None if the message no longer exists."""
    ref, position = location
    for message in history.transcript.messages(history.find(ref), position):
        return _message_body(message)
    return None


def session_location(ref: str) -> Location:
    """Return the location of the header of a session, or of the start of a subagent."""
    return ref, -1


def _header_block(summary: SessionSummary) -> Block:
    """Return the block before the first message: title, metadata and annotations."""
    fields = dict(header_fields(summary, zone=None))
    ref = fields.pop("Session")
    details = [
        f"{value} {name.lower()}" if name in LABELED_FIELDS else value for name, value in fields.items()
    ]
    body: list[tuple[str, StyleName]] = [(session_title(summary), "title")]
    body += [(" · ".join(details), "detail"), (ref, "detail")]
    body += [(line, "plain") for line in annotation_lines(summary)]
    return Block("header", session_location(summary.ref), body=tuple(body))


class _BlockBuilder:
    """Converts the items of a transcript to blocks, in order."""

    def __init__(self, summary: SessionSummary, *, with_call_bodies: bool = False) -> None:
        self._ref_stack = [summary.ref]  # the session and the enclosing subagents
        self._base = f"{summary.workspace_path.rstrip('/')}/" if summary.workspace_path else None
        self._with_call_bodies = with_call_bodies

    def build(self, item: TranscriptItem) -> Block | None:
        """Return the block of an item, or None for the end of a subagent."""
        match item:
            case SubagentStart(summary):
                self._ref_stack.append(summary.ref)
                return Block(
                    "subagent",
                    session_location(summary.ref),
                    depth=len(self._ref_stack) - 2,
                    heading=f"Subagent  {session_title(summary)}",
                    right_label=pluralize(summary.message_count, "message"),
                )
            case SubagentEnd():
                self._ref_stack.pop()
                return None
            case MessageItem():
                return self._message_block(item)

    def _message_block(self, item: MessageItem) -> Block:
        message, depth = item.message, len(self._ref_stack) - 1
        kind = _kind(message)
        heading, right_label = _heading(message, self._base, is_subagent=depth > 0)
        return Block(
            kind,
            (self._ref_stack[-1], item.position),
            depth=depth,
            turn=item.turn if depth == 0 else 0,
            heading=heading,
            right_label=right_label,
            is_failed=message.tool is not None and message.tool.status == "failed",
            is_dim=not message.is_active,
            body=None if kind == "call" and not self._with_call_bodies else _message_body(message),
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
            return "error"
        case _:
            return "answer"


def _heading(message: Message, base: str | None, *, is_subagent: bool) -> tuple[str, str]:
    """Return the heading and its right label. A path is shortened by the prefix `base`."""
    time = format_time(message.timestamp, is_inferred=message.has_inferred_time, zone=None)
    tool = message.tool
    if tool is not None:
        name = one_line(tool.name, MAX_TOOL_NAME_CHARS)
        description = describe_call(tool, MAX_CALL_CHARS).removeprefix(base or "")
        return "  ".join(part for part in (name, description) if part), call_outcome(tool)
    if message.role == "thinking":
        return f"Thinking  {one_line(message.content, MAX_THINKING_CHARS)}", ""
    if message.role == "assistant" and message.kind is None and message.is_active:
        return "", ""
    return speaker_label(message, is_agent=is_subagent), time


def _message_body(message: Message) -> Body:
    """Return all lines of a message: text, edits or arguments, result, attachments."""
    return tuple(_body_lines(message))


def _body_lines(message: Message) -> Iterator[tuple[str, StyleName]]:
    tool = message.tool
    plain: StyleName = {"user": "prompt", "thinking": "dim", "error": "error"}.get(message.role, "plain")  # type: ignore[assignment]
    if message.content.strip():
        yield from _markdown_lines(message.content, plain)
    if tool is not None:
        changes = [line for edit in tool.edits for line in _diff(edit, is_only=len(tool.edits) == 1)]
        yield from ((_expand_tabs(line), _diff_style(line)) for line in changes)
        if not changes:
            yield from ((_expand_tabs(line), "plain") for line in argument_lines(tool))
        if tool.result:
            style: StyleName = "error" if tool.status == "failed" else "dim"
            lines = sanitize(tool.result).removesuffix("\n").split("\n")
            yield from ((_expand_tabs(line), style) for line in lines)
    yield from ((f"[{attachment_label(attachment)}]", "dim") for attachment in message.attachments)


def _markdown_lines(text: str, plain: StyleName) -> Iterator[tuple[str, StyleName]]:
    """Split Markdown into lines and style code blocks and headings. The markup stays visible."""
    fence = ""
    for line in sanitize(text).strip("\n").split("\n"):
        content = line.lstrip(" >")
        if fence:
            if content.startswith(fence) and not content.strip(fence[0]).strip():
                fence = ""
            yield _expand_tabs(line), "code"
        elif content.startswith(("```", "~~~")):
            fence = content[: len(content) - len(content.lstrip(content[0]))]
            yield _expand_tabs(line), "code"
        elif content.startswith("#") and content.lstrip("#").startswith(" "):
            yield _expand_tabs(line), "strong"
        else:
            yield _expand_tabs(line), plain


def _expand_tabs(line: str) -> str:
    return line.expandtabs(4) if "\t" in line else line


def _diff(edit: Edit, *, is_only: bool) -> Iterator[str]:
    """Return the lines of an edit. A single edit omits the file name, which is in the heading."""
    return islice(diff_lines(edit), 2 if is_only else 0, None)


def _diff_style(line: str) -> StyleName:
    if line.startswith(("--- ", "+++ ", "@@")):
        return "detail"
    return "added" if line.startswith("+") else "removed"
