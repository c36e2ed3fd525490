"""A session as it is read: who said what and when, what the tools did, and who was sent out."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from backscroll.model import Message, SessionSummary
from backscroll.model.sanitize import one_line
from backscroll.render.session_header import attachment_name, speaker, title_of
from backscroll.render.terminal.humanize import counted, short
from backscroll.render.terminal.options import PLAIN_WIDTH, View
from backscroll.render.terminal.prose import prose_lines
from backscroll.render.terminal.tool_calls import call_lines
from backscroll.render.terminal.width import cells, cut, wrapped
from backscroll.render.turns import Begun, Ended, Event, Said

__all__ = ["head_lines", "transcript_lines"]

_BAR = "  │ "
_PROMPT = 3  # lines of what a subagent was asked
_RULED = 100


def head_lines(summary: SessionSummary, view: View) -> Iterator[str]:
    """What stands above a session: title, ref, and what is known of it."""
    begun, last = summary.created_at, summary.updated_at
    when = f"{_day(begun)} {_clock(begun)}" if begun is not None else "time unknown"
    if begun is not None and last is not None and _minute(begun) != _minute(last):
        is_same = _day(begun) == _day(last)
        when += f" to {_clock(last)}" if is_same else f" to {_day(last)} {_clock(last)}"
    if begun is not None:
        when += f" {begun.astimezone():%Z}"
    tokens = f"{short(summary.total_tokens)} tokens" if summary.total_tokens is not None else ""
    notes = [summary.workspace_path or "no workspace", summary.git_branch, when]
    notes += [counted(summary.message_count, "message"), tokens, ", ".join(summary.models)]
    notes += ["" if summary.completeness == "complete" else summary.completeness]
    notes += ["no longer in the tool's own store" if summary.is_gone else ""]
    notes += [f"subagent of {summary.parent_ref}" if summary.parent_ref else ""]
    title = f"{'★ ' if summary.is_starred else ''}{title_of(summary)}"
    yield from (view.ink("title", line) for line in _fitted(title, view))
    yield view.ink("dim", one_line(summary.ref, PLAIN_WIDTH))
    told = " · ".join(one_line(note, PLAIN_WIDTH) for note in notes if note)
    yield from (view.ink("dim", line) for line in _fitted(told, view))


def transcript_lines(summary: SessionSummary, events: Iterable[Event], view: View) -> Iterator[str]:
    """The events, each after a blank line but for calls that follow each other."""
    shown = _Transcript(summary, view)
    for event in events:
        yield from shown.lines(event)


class _Transcript:
    """Remembers what was shown last, and how deep inside subagents it is."""

    def __init__(self, summary: SessionSummary, view: View) -> None:
        self._base = summary.workspace_path
        self._is_agent = summary.parent_ref is not None
        self._views = [view]
        self._day = ""
        self._last = ""

    def lines(self, event: Event) -> Iterator[str]:
        match event:
            case Said():
                yield from self._said(event)
            case Begun():
                if not self._is_wanted("tool") and not self._views[0].with_agents:
                    return
                yield from self._indented(self._begun(event), is_close=True)
                if self._views[0].with_agents:
                    self._views.append(self._views[-1].narrowed(len(_BAR)))
            case Ended():
                if len(self._views) > 1:
                    self._views.pop()

    def _is_wanted(self, role: str) -> bool:
        only = self._views[0].only
        return not only or role in only

    def _said(self, event: Said) -> Iterator[str]:
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
        held = (view.ink("dim", f"[{attachment_name(one)}]") for one in message.attachments)
        yield from (f"{_BAR * depth}{line}" for line in held)

    def _words(
        self, message: Message, view: View, *, turn: int, when: str, is_unfolded: bool
    ) -> Iterator[str]:
        role, ink = message.role, view.ink
        name = speaker(message, is_agent=self._is_agent or len(self._views) > 1)
        head = f"── {f'{turn} · ' if turn else ''}{name}"
        rest = f" · {when}"
        if turn and view.width is not None:
            rest += f" {'─' * max(min(view.width, _RULED) - cells(head + rest) - 1, 0)}".rstrip()
        yield ink(role, head) + ink("dim", rest)
        if message.content.strip():
            style = role if role in ("thinking", "error", "system") else ""
            is_markdown = role == "assistant"
            yield from prose_lines(
                message.content,
                ink,
                width=view.width,
                is_full=is_unfolded,
                style="dim" if style == "thinking" else style,
                is_markdown=is_markdown,
            )

    def _begun(self, event: Begun) -> Iterator[str]:
        view, summary = self._views[-1], event.summary
        tokens = f"{short(summary.total_tokens)} tokens" if summary.total_tokens is not None else ""
        notes = [counted(summary.message_count, "message"), tokens]
        notes += ["" if event.is_placed else "started at an unknown place", one_line(summary.ref, 100)]
        head = f"  ⤷ subagent  {title_of(summary)}"
        told = "".join(f" · {note}" for note in notes if note)
        yield view.ink("agent", cut(head, view.room))
        yield view.ink("dim", f"    {told.removeprefix(' · ')}")
        prompt = summary.first_message_preview or ""
        if prompt and not view.with_agents and one_line(prompt, 200) != one_line(summary.title or "", 200):
            inner = view.narrowed(4)
            lines = list(prose_lines(prompt, view.ink, width=inner.width, is_full=False, style="dim"))
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


def _fitted(line: str, view: View) -> Iterator[str]:
    yield from wrapped(line, view.width) if view.width is not None else (line,)


def _minute(at: datetime) -> str:
    return f"{_day(at)} {_clock(at)}"


def _day(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d")


def _clock(at: datetime) -> str:
    return at.astimezone().strftime("%H:%M")
