"""A session for reading: messages with author and time, tool calls, subagents."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from backscroll.model import Message, SessionSummary
from backscroll.model.text import one_line, pluralize
from backscroll.render.session_header import attachment_label, session_title, speaker_label
from backscroll.render.terminal.humanize import compact_count, format_usd
from backscroll.render.terminal.options import MAX_PLAIN_LINE_CHARS, TranscriptOptions
from backscroll.render.terminal.prose import prose_lines
from backscroll.render.terminal.tool_calls import call_lines
from backscroll.render.terminal.width import cell_width, truncate, wrap
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

__all__ = ["header_lines", "transcript_lines"]

_SUBAGENT_BAR = "  │ "
_MAX_PROMPT_LINES = 3  # of a collapsed subagent
_MAX_RULE_WIDTH = 100


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
    yield options.style("dim", one_line(summary.ref, MAX_PLAIN_LINE_CHARS))
    text = " · ".join(one_line(field, MAX_PLAIN_LINE_CHARS) for field in fields if field)
    yield from (options.style("dim", line) for line in _wrap(text, options))


def _time_range(started: datetime | None, updated: datetime | None) -> str:
    if started is None:
        return "time unknown"
    text = f"{_date(started)} {_clock(started)}"
    if updated is not None and text != f"{_date(updated)} {_clock(updated)}":
        is_same_day = _date(started) == _date(updated)
        text += f" to {_clock(updated)}" if is_same_day else f" to {_date(updated)} {_clock(updated)}"
    return f"{text} {started.astimezone():%Z}"


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
            lines = call_lines(
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
            yield from prose_lines(
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
            lines = list(prose_lines(prompt, options.style, width=width, is_full=False, style_name="dim"))
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
        mark = "" if message.timestamp_source in (None, "stored") else "~"
        date = _date(at)
        if date == self._last_date and message.role != "user":
            return f"{mark}{_clock(at)}"
        self._last_date = date
        return f"{mark}{date} {_clock(at)}"


def _wrap(line: str, options: TranscriptOptions) -> Iterator[str]:
    yield from wrap(line, options.width) if options.width is not None else (line,)


def _date(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d")


def _clock(at: datetime) -> str:
    return at.astimezone().strftime("%H:%M")
