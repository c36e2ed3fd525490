"""A session as it is read: who said what and when, what the tools did, and who was sent out."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from backscroll.model import Message, SessionSummary
from backscroll.model.sanitize import one_line
from backscroll.render.session_header import attachment_label, session_title, speaker_label
from backscroll.render.terminal.humanize import compact_number, pluralize
from backscroll.render.terminal.options import MAX_PLAIN_LINE_CHARS, TranscriptOptions
from backscroll.render.terminal.prose import prose_lines
from backscroll.render.terminal.tool_calls import call_lines
from backscroll.render.terminal.width import cell_width, truncate, wrap
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

__all__ = ["header_lines", "transcript_lines"]

_BAR = "  │ "
_PROMPT = 3  # lines of what a subagent was asked
_RULED = 100


def header_lines(summary: SessionSummary, view: TranscriptOptions) -> Iterator[str]:
    """What stands above a session: title, ref, and what is known of it."""
    begun, last = summary.created_at, summary.updated_at
    when = f"{_day(begun)} {_clock(begun)}" if begun is not None else "time unknown"
    if begun is not None and last is not None and _minute(begun) != _minute(last):
        is_same = _day(begun) == _day(last)
        when += f" to {_clock(last)}" if is_same else f" to {_day(last)} {_clock(last)}"
    if begun is not None:
        when += f" {begun.astimezone():%Z}"
    tokens = f"{compact_number(summary.total_tokens)} tokens" if summary.total_tokens is not None else ""
    notes = [summary.workspace_path or "no workspace", summary.git_branch, when]
    notes += [pluralize(summary.message_count, "message"), tokens, ", ".join(summary.models)]
    notes += ["" if summary.completeness == "complete" else summary.completeness]
    notes += ["no longer in the tool's own store" if summary.is_gone else ""]
    notes += [f"subagent of {summary.parent_ref}" if summary.parent_ref else ""]
    title = f"{'★ ' if summary.is_starred else ''}{session_title(summary)}"
    yield from (view.style("title", line) for line in _fitted(title, view))
    yield view.style("dim", one_line(summary.ref, MAX_PLAIN_LINE_CHARS))
    told = " · ".join(one_line(note, MAX_PLAIN_LINE_CHARS) for note in notes if note)
    yield from (view.style("dim", line) for line in _fitted(told, view))


def transcript_lines(
    summary: SessionSummary, events: Iterable[TranscriptItem], view: TranscriptOptions
) -> Iterator[str]:
    """The events, each after a blank line but for calls that follow each other."""
    shown = _Transcript(summary, view)
    for event in events:
        yield from shown.lines(event)


class _Transcript:
    """Remembers what was shown last, and how deep inside subagents it is."""

    def __init__(self, summary: SessionSummary, view: TranscriptOptions) -> None:
        self._base = summary.workspace_path
        self._is_agent = summary.parent_ref is not None
        self._views = [view]
        self._day = ""
        self._last = ""

    def lines(self, event: TranscriptItem) -> Iterator[str]:
        match event:
            case MessageItem():
                yield from self._said(event)
            case SubagentStart():
                if not self._is_wanted("tool") and not self._views[0].with_agents:
                    return
                yield from self._indented(self._begun(event), is_close=True)
                if self._views[0].with_agents:
                    self._views.append(self._views[-1].narrowed(len(_BAR)))
            case SubagentEnd():
                if len(self._views) > 1:
                    self._views.pop()

    def _is_wanted(self, role: str) -> bool:
        only = self._views[0].only
        return not only or role in only

    def _said(self, event: MessageItem) -> Iterator[str]:
        message, view = event.message, self._views[-1]
        if not self._is_wanted(message.role):
            return
        depth = len(self._views) - 1
        is_unfolded = view.is_full or (not depth and event.position == view.unfolded)
        when = " · ".join(part for part in (self._time(message), f"#{event.position}") if part)
        if message.tool is not None:
            base = self._base
            lines = call_lines(message, message.tool, view, base=base, when=when, is_unfolded=is_unfolded)
            yield from self._indented(lines, is_close=True)
        else:
            turn = event.turn if message.role == "user" and message.is_active and not depth else 0
            lines = self._words(message, view, turn=turn, when=when, is_unfolded=is_unfolded)
            yield from self._indented(lines, is_close=False)
        held = (view.style("dim", f"[{attachment_label(one)}]") for one in message.attachments)
        yield from (f"{_BAR * depth}{line}" for line in held)

    def _words(
        self, message: Message, view: TranscriptOptions, *, turn: int, when: str, is_unfolded: bool
    ) -> Iterator[str]:
        role, style = message.role, view.style
        name = speaker_label(message, is_agent=self._is_agent or len(self._views) > 1)
        head = f"── {f'{turn} · ' if turn else ''}{name}"
        rest = f" · {when}"
        if turn and view.width is not None:
            rest += f" {'─' * max(min(view.width, _RULED) - cell_width(head + rest) - 1, 0)}".rstrip()
        yield style(role, head) + style("dim", rest)
        if message.content.strip():
            style_name = role if role in ("thinking", "error", "system") else ""
            is_markdown = role == "assistant"
            yield from prose_lines(
                message.content,
                style,
                width=view.width,
                is_full=is_unfolded,
                style_name="dim" if style_name == "thinking" else style_name,
                is_markdown=is_markdown,
            )

    def _begun(self, event: SubagentStart) -> Iterator[str]:
        view, summary = self._views[-1], event.summary
        tokens = f"{compact_number(summary.total_tokens)} tokens" if summary.total_tokens is not None else ""
        notes = [pluralize(summary.message_count, "message"), tokens]
        notes += ["" if event.is_placed else "started at an unknown place", one_line(summary.ref, 100)]
        head = f"  ⤷ subagent  {session_title(summary)}"
        told = "".join(f" · {note}" for note in notes if note)
        yield view.style("agent", truncate(head, view.room))
        yield view.style("dim", f"    {told.removeprefix(' · ')}")
        prompt = summary.first_message_preview or ""
        if prompt and not view.with_agents and one_line(prompt, 200) != one_line(summary.title or "", 200):
            inner = view.narrowed(4)
            lines = list(prose_lines(prompt, view.style, width=inner.width, is_full=False, style_name="dim"))
            yield from (f"    {line}" for line in lines[:_PROMPT])

    def _indented(self, lines: Iterable[str], *, is_close: bool) -> Iterator[str]:
        """The lines beside the bar of the subagent they are of, with a blank one before where it helps."""
        margin = _BAR * (len(self._views) - 1)
        kind = f"{'close' if is_close else 'apart'}{margin}"
        if kind != self._last or not is_close:
            yield margin.rstrip()
        self._last = kind
        yield from (f"{margin}{line}".rstrip() for line in lines)

    def _time(self, message: Message) -> str:
        """The time, with the day when it is another than the one before."""
        at = message.timestamp
        if at is None:
            return ""
        mark = "" if message.timestamp_source in (None, "stored") else "~"
        day = _day(at)
        if day == self._day and message.role != "user":
            return f"{mark}{_clock(at)}"
        self._day = day
        return f"{mark}{day} {_clock(at)}"


def _fitted(line: str, view: TranscriptOptions) -> Iterator[str]:
    yield from wrap(line, view.width) if view.width is not None else (line,)


def _minute(at: datetime) -> str:
    return f"{_day(at)} {_clock(at)}"


def _day(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d")


def _clock(at: datetime) -> str:
    return at.astimezone().strftime("%H:%M")
