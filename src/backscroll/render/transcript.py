"""A session for reading: messages with author and time, tool calls, subagents; and original records."""

import re
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import cached_property

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.message import Message, ToolCall
from backscroll.model.session import SessionSummary
from backscroll.model.text import escape_json, one_line, pluralize, sanitize
from backscroll.render.humanize import compact_count, format_usd
from backscroll.render.session_header import attachment_label, session_title, speaker_label
from backscroll.render.terminal_text import Style, cell_width, truncate, wrap
from backscroll.render.tool_calls import argument_lines, call_outcome, describe_call, diff_lines
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

_MAX_PLAIN_LINE_CHARS = 300  # of one-line fields in output without a terminal
_MIN_WIDTH = 20
_SUBAGENT_BAR = "  │ "
_MAX_PROMPT_LINES = 3  # of a collapsed subagent
_MAX_RULE_WIDTH = 100


class TranscriptOptions(Struct, frozen=True, kw_only=True, dict=True):
    """Width, styling and level of detail of a transcript."""

    width: int | None = None  # cells of the terminal; None: lines are not wrapped
    is_colored: bool = False
    is_full: bool = False  # collapse and truncate nothing
    only: Collection[str] = ()  # roles; empty: all. "error" includes failed tool calls
    unfolded: int | None = None  # position of a message that is shown in full
    with_agents: bool = False  # show the messages of subagents

    @cached_property
    def style(self) -> Style:
        return Style(is_colored=self.is_colored)

    def selects(self, message: Message) -> bool:
        """Return whether a message has one of the selected roles."""
        if not self.only or message.role in self.only:
            return True
        return "error" in self.only and message.tool is not None and message.tool.is_error

    @property
    def max_line_width(self) -> int:
        """Cells at which a one-line text is truncated."""
        return self.width or _MAX_PLAIN_LINE_CHARS

    def narrowed(self, cells: int) -> "TranscriptOptions":
        """Return the options for text behind a margin."""
        if self.width is None:
            return self
        return replace(self, width=max(self.width - cells, _MIN_WIDTH))


def header_lines(
    summary: SessionSummary, options: TranscriptOptions, *, reported_usd: float | None = None
) -> Iterator[str]:
    """Yield title, ref and properties of a session. ``reported_usd`` is its cost as the tool reports it."""
    tokens = compact_count(summary.total_tokens, "token") if summary.total_tokens is not None else ""
    fields = [
        summary.workspace_path or "no workspace",
        summary.git_branch,
        _time_range(summary.created_at, summary.updated_at),
        pluralize(summary.message_count, "message"),
        tokens,
        f"{format_usd(reported_usd)} reported by the tool" if reported_usd is not None else "",
        ", ".join(summary.models),
        "" if summary.completeness == "complete" else summary.completeness,
        "no longer in the tool's history" if summary.is_gone else "",
        f"subagent of {summary.parent_ref}" if summary.parent_ref else "",
    ]
    title = f"{'★ ' if summary.is_starred else ''}{session_title(summary)}"
    yield from (options.style("title", line) for line in _wrap(title, options))
    yield options.style("dim", one_line(summary.ref, _MAX_PLAIN_LINE_CHARS))
    text = " · ".join(one_line(field, _MAX_PLAIN_LINE_CHARS) for field in fields if field)
    yield from (options.style("dim", line) for line in _wrap(text, options))


def _time_range(started: datetime | None, updated: datetime | None) -> str:
    if started is None:
        return "time unknown"
    text = f"{_date(started)} {_clock(started)}"
    if updated is not None and text != f"{_date(updated)} {_clock(updated)}":
        is_same_day = _date(started) == _date(updated)
        text += f" to {_clock(updated)}" if is_same_day else f" to {_date(updated)} {_clock(updated)}"
    return f"{text} {started.astimezone():%Z}"


def _wrap(line: str, options: TranscriptOptions) -> Iterator[str]:
    yield from wrap(line, options.width) if options.width is not None else (line,)


def transcript_lines(
    summary: SessionSummary, items: Iterable[TranscriptItem], options: TranscriptOptions
) -> Iterator[str]:
    """Yield the items, each after a blank line. Consecutive tool calls have no blank line between them."""
    transcript = _Transcript(summary, options)
    for item in items:
        yield from transcript.lines(item)


class _Transcript:
    """State while rendering: the last date and block, and the open subagents."""

    def __init__(self, summary: SessionSummary, options: TranscriptOptions) -> None:
        self._base = summary.workspace_path
        self._is_agent = summary.parent_ref is not None
        self._options = [options]  # of the session and each open subagent
        self._last_date = ""
        self._last_block = ""

    def lines(self, item: TranscriptItem) -> Iterator[str]:
        match item:
            case MessageItem():
                yield from self._message_lines(item)
            case SubagentStart():
                only = self._options[0].only
                if only and "tool" not in only and not self._options[0].with_agents:
                    return
                yield from self._indented(self._subagent_lines(item), is_compact=True)
                if self._options[0].with_agents:
                    self._options.append(self._options[-1].narrowed(len(_SUBAGENT_BAR)))
            case SubagentEnd():
                if len(self._options) > 1:
                    self._options.pop()

    def _message_lines(self, item: MessageItem) -> Iterator[str]:
        message, options = item.message, self._options[-1]
        if not self._options[0].selects(message):
            return
        depth = len(self._options) - 1
        is_unfolded = options.is_full or (not depth and item.position == options.unfolded)
        when = " · ".join(part for part in (self._time(message), f"#{item.position}") if part)
        if message.tool is not None:
            lines = _call_lines(
                message, message.tool, options, base=self._base, when=when, is_unfolded=is_unfolded
            )
            yield from self._indented(lines, is_compact=True)
        else:
            turn = item.turn if message.role == "user" and message.is_active and not depth else 0
            lines = self._text_lines(message, options, turn=turn, when=when, is_unfolded=is_unfolded)
            yield from self._indented(lines, is_compact=False)
        for attachment in message.attachments:
            label = options.style("dim", f"[{attachment_label(attachment)}]")
            yield f"{_SUBAGENT_BAR * depth}{label}"

    def _text_lines(
        self, message: Message, options: TranscriptOptions, *, turn: int, when: str, is_unfolded: bool
    ) -> Iterator[str]:
        role, style = message.role, options.style
        name = speaker_label(message, is_agent=self._is_agent or len(self._options) > 1)
        heading = f"── {f'{turn} · ' if turn else ''}{name}"
        rest = f" · {when}"
        if turn and options.width is not None:
            rule_width = min(options.width, _MAX_RULE_WIDTH) - cell_width(heading + rest) - 1
            rest += f" {'─' * max(rule_width, 0)}".rstrip()
        yield style(role, heading) + style("dim", rest)
        if message.content.strip():
            styles = {"thinking": "dim", "error": "error", "system": "system"}
            yield from _prose_lines(
                message.content,
                style,
                width=options.width,
                is_full=is_unfolded,
                style_name=styles.get(role, ""),
                is_markdown=role == "assistant",
            )

    def _subagent_lines(self, item: SubagentStart) -> Iterator[str]:
        options, summary = self._options[-1], item.summary
        tokens = compact_count(summary.total_tokens, "token") if summary.total_tokens is not None else ""
        fields = [
            pluralize(summary.message_count, "message"),
            tokens,
            "" if item.is_placed else "started by an unknown call",
            one_line(summary.ref, 100),
        ]
        heading = f"  ⤷ subagent  {session_title(summary)}"
        yield options.style("agent", truncate(heading, options.max_line_width))
        yield options.style("dim", f"    {' · '.join(field for field in fields if field)}")
        prompt = summary.first_message_preview or ""
        is_title = one_line(prompt, 200) == one_line(summary.title or "", 200)
        if prompt and not options.with_agents and not is_title:
            width = options.narrowed(4).width
            lines = list(_prose_lines(prompt, options.style, width=width, is_full=False, style_name="dim"))
            yield from (f"    {line}" for line in lines[:_MAX_PROMPT_LINES])

    def _indented(self, lines: Iterable[str], *, is_compact: bool) -> Iterator[str]:
        """Yield the lines behind the bars of open subagents, after a blank line where one is needed."""
        margin = _SUBAGENT_BAR * (len(self._options) - 1)
        block = f"{'compact' if is_compact else 'spaced'}{margin}"
        if block != self._last_block or not is_compact:
            yield margin.rstrip()
        self._last_block = block
        yield from (f"{margin}{line}".rstrip() for line in lines)

    def _time(self, message: Message) -> str:
        """Return the time of a message, with the date for prompts and whenever it changes."""
        at = message.timestamp
        if at is None:
            return ""
        mark = "~" if message.has_inferred_time else ""
        date = _date(at)
        if date == self._last_date and message.role != "user":
            return f"{mark}{_clock(at)}"
        self._last_date = date
        return f"{mark}{date} {_clock(at)}"


def _date(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d")


def _clock(at: datetime) -> str:
    return at.astimezone().strftime("%H:%M")


MAX_LINE_CHARS = 2000  # shown of a line unless everything is shown
_MAX_PROSE_WIDTH = 100  # cells; longer lines are hard to read
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_INLINE = re.compile(r"(`[^`]+`)|(\*\*[^*]+\*\*)")


def _prose_lines(
    text: str,
    style: Style,
    *,
    width: int | None,
    is_full: bool,
    style_name: str = "",
    is_markdown: bool = False,
) -> Iterator[str]:
    """Yield the lines of a text. With a width, prose is wrapped; code and tables are not.

    Markdown is styled lightly; no character of it is changed.
    """
    fence = ""
    for raw in sanitize(text).rstrip("\n").split("\n"):
        line = _truncate_line(raw, is_full=is_full)
        marker = _FENCE.match(line) if is_markdown else None
        if marker is not None and (not fence or _closes(line, marker[1], fence)):
            fence = "" if fence else marker[1]
            yield style("dim", line)
        elif fence:
            yield style("code", line)
        elif is_markdown and _HEADING.match(line):
            yield from (style("strong", part) for part in _wrap_prose(line, width))
        elif is_markdown and style.is_colored:
            for part in _wrap_prose(line, width):
                yield _INLINE.sub(lambda match: _style_inline(match, style), part)
        else:
            yield from (style(style_name, part) if style_name else part for part in _wrap_prose(line, width))


def _closes(line: str, marker: str, fence: str) -> bool:
    return marker.startswith(fence) and not line.strip().strip(marker[0])


def _wrap_prose(line: str, width: int | None) -> Iterator[str]:
    if width is None or line.lstrip().startswith("|"):  # rows of a table are not wrapped
        yield line
        return
    yield from wrap(line, min(width, _MAX_PROSE_WIDTH))


def _style_inline(match: re.Match[str], style: Style) -> str:
    return style("code", match[1]) if match[1] else style("strong", match[2])


def _truncate_line(line: str, *, is_full: bool) -> str:
    """Return the start of a very long line and the number of characters left out."""
    if is_full or len(line) <= MAX_LINE_CHARS:
        return line
    hidden = pluralize(len(line) - MAX_LINE_CHARS, "more character")
    return f"{line[:MAX_LINE_CHARS]}… {hidden} (--full shows all)"


_MAX_DIFF_LINES = 20
_MAX_ERROR_LINES = 6
_MIN_SUBJECT_WIDTH = 12
_MARKER = "  ▸ "
_INDENT = "    "
_DIFF_STYLES = {"+": "added", "-": "removed", "@": "accent"}


def _call_lines(
    message: Message,
    tool: ToolCall,
    options: TranscriptOptions,
    *,
    base: str | None,
    when: str,
    is_unfolded: bool,
) -> Iterator[str]:
    """Yield a call: one line with the result collapsed, and the diff or error output below it.

    Paths below the folder `base` are shown relative to it.
    """
    style = options.style
    name = one_line(tool.name, 60)
    notes = "".join(
        f" · {note}" for note in (call_outcome(tool), "" if message.is_active else "abandoned") if note
    )
    time = f" · {when}" if when else ""
    used = cell_width(_MARKER + name + notes + time) + 2
    width = max(options.max_line_width - used, _MIN_SUBJECT_WIDTH)
    subject = truncate(_relative(base, describe_call(tool, max(width * 4, 400))), width)
    is_error = tool.status in ("failed", "cancelled") or tool.decision == "rejected"
    yield (
        f"{style('dim', _MARKER)}{style('tool', name)}{f'  {subject}' if subject else ''}"
        f"{style('error' if is_error else 'dim', notes)}{style('dim', time)}"
    )
    inner = options.narrowed(len(_INDENT))
    if message.content.strip():
        text = _prose_lines(message.content, style, width=inner.width, is_full=is_unfolded)
        yield from (f"{_INDENT}{line}".rstrip() for line in text)
    diff = list(_edit_lines(tool))
    shown = diff if is_unfolded or len(diff) <= _MAX_DIFF_LINES + 1 else diff[:_MAX_DIFF_LINES]
    yield from (_INDENT + _style_diff_line(line, options, is_full=is_unfolded) for line in shown)
    if len(shown) < len(diff):
        yield _INDENT + style("dim", f"… {pluralize(len(diff) - len(shown), 'more line')}")
    if is_unfolded:
        yield from _arguments_and_result(tool, options, has_diff=bool(diff))
    elif tool.status == "failed":
        yield from _error_output(tool, options)


def _relative(base: str | None, subject: str) -> str:
    return subject.removeprefix(f"{base.rstrip('/')}/") if base else subject


def _edit_lines(tool: ToolCall) -> Iterator[str]:
    """Yield all edits. File names are included if there are several; a single one is in the call's line."""
    for edit in tool.edits:
        lines = diff_lines(edit)
        file_lines = [line for line in (next(lines, ""), next(lines, "")) if line]
        if len(tool.edits) > 1:
            yield from file_lines
        yield from lines


def _style_diff_line(line: str, options: TranscriptOptions, *, is_full: bool) -> str:
    text = _truncate_line(line, is_full=is_full)
    return options.style(_DIFF_STYLES.get(line[:1], "dim"), text)


def _arguments_and_result(tool: ToolCall, options: TranscriptOptions, *, has_diff: bool) -> Iterator[str]:
    style = options.style
    if not has_diff:
        yield from (f"{_INDENT}{style('dim', line)}" for line in argument_lines(tool))
    if tool.result:
        yield from (f"{_INDENT}{style('dim', '│')} {line}" for line in _result_lines(tool.result))


def _error_output(tool: ToolCall, options: TranscriptOptions) -> Iterator[str]:
    """Yield the end of the output of a failed call, which usually contains the reason."""
    lines = [line for line in _result_lines(tool.result or "") if line.strip()]
    if len(lines) > _MAX_ERROR_LINES + 1:
        hidden = pluralize(len(lines) - _MAX_ERROR_LINES, "earlier line")
        yield f"{_INDENT}{options.style('dim', f'│ … {hidden}')}"
        lines = lines[-_MAX_ERROR_LINES:]
    width = options.max_line_width - len(_INDENT) - 2
    bar = options.style("dim", "│")
    yield from (f"{_INDENT}{bar} {truncate(line[: width * 2], width)}" for line in lines)


def _result_lines(result: str) -> list[str]:
    return sanitize(result).removesuffix("\n").split("\n")


def record_lines(record: bytes, message: Message, position: int, options: TranscriptOptions) -> Iterator[str]:
    """Yield a record: for a terminal indented below its origin, else on one line without anything else.

    Unsafe characters are escaped, so the JSON stays equivalent.
    """
    is_terminal = options.width is not None
    if is_terminal:
        origin = one_line(f"{message.origin.path} · {message.origin.place}", _MAX_PLAIN_LINE_CHARS)
        yield ""
        yield options.style("dim", f"── {message.role} · #{position} · {origin}")
    try:
        formatted = msgspec.json.format(record, indent=2 if is_terminal else -1)
        yield from escape_json(formatted).decode().split("\n")
        return
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        yield from sanitize(record.decode()).split("\n")
    except UnicodeDecodeError:
        yield b64encode(record).decode()
