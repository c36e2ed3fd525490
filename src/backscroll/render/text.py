"""Sessions as lines of text, safe for any terminal."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from backscroll.model import (
    Message,
    PaginatedResult,
    Retention,
    SearchResult,
    Session,
    SessionSummary,
    ToolCall,
)
from backscroll.render.inert import inert, one_line
from backscroll.render.noted import added_lines, starred_title, tag_words

__all__ = ["expiry_lines", "match_lines", "session_lines", "transcript_lines"]

_CUT = 12  # lines of tool output
_WIDTH = 300
_NARROWEST = 40
_MARGIN = "      │ "


def _ago(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "unknown"
    seconds = (now - at).total_seconds()
    for unit, size in (
        ("y", 31_557_600),
        ("mo", 2_629_800),
        ("w", 604_800),
        ("d", 86_400),
        ("h", 3600),
        ("min", 60),
    ):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def session_lines(page: PaginatedResult[SessionSummary], now: datetime | None = None) -> Iterator[str]:
    """A page of sessions, two lines each."""
    now = now or datetime.now(UTC)
    for summary in page.data:
        marks = [mark for mark, on in (("gone", summary.is_gone), (summary.completeness, True)) if on]
        notes = [mark for mark in marks if mark != "complete"]
        tokens = f" · {summary.total_tokens:,} tokens" if summary.total_tokens is not None else ""
        tags = f"  {tag_words(summary)}" if summary.tags else ""
        yield f"{summary.index:>4}  {starred_title(summary, 90, '(no words)')}{tags}"
        yield (
            f"      {_ago(summary.updated_at, now)} · {summary.source}"
            f" · {summary.workspace_name or 'no workspace'}"
            f" · {summary.message_count:,} messages{tokens} · {summary.id[:8]}"
            + (f" · {', '.join(notes)}" if notes else "")
        )
    shown = page.pagination
    if shown.has_more or shown.offset:
        yield f"{shown.offset + 1} to {shown.offset + len(page.data)} of {shown.total:,}"


def match_lines(
    found: SearchResult, *, is_coloured: bool, width: int = _WIDTH, now: datetime | None = None
) -> Iterator[str]:
    """What a search found: the session, and the place in it with its surroundings, in lines so wide."""
    now = now or datetime.now(UTC)
    width = max(min(width, _WIDTH) - len(_MARGIN), _NARROWEST)
    for match in found.data:
        more = f" · {match.match_count:,} matches" if match.match_count > 1 else ""
        index = f"{match.session_index:>4}" if match.session_index is not None else "    "
        yield f"{index}  {one_line(match.title or match.session_ref, 90)}"
        yield (
            f"      {_ago(match.timestamp, now)} · {match.source}"
            f" · {one_line(match.workspace_name or 'no workspace', 40)}"
            f" · {'note' if match.is_note else match.role} · {_short(match.session_id)}{more}"
        )
        text, highlights = _fitted(match.match, match.highlights, width)
        marked = _marked(text, highlights) if is_coloured else inert(text)
        for line in match.context:
            yield _MARGIN + (marked if line == match.match else _cut(inert(line), width))
        yield ""
    if found.data:
        total = f"{found.total:,}" if found.total is not None else f"at least {found.total_at_least:,}"
        yield f"{found.offset + 1} to {found.offset + len(found.data)} of {total}, {found.took_ms:.0f} ms"


def _short(id_: str) -> str:
    """As much of an id as tells it from others; ids that are made of words are told whole."""
    return inert(id_ if id_.startswith("inline-") else id_[:8])


def _fitted(
    text: str, highlights: Sequence[tuple[int, int]], width: int
) -> tuple[str, Sequence[tuple[int, int]]]:
    """The part of a line around what was found, when all of it is too long, and the places in that part."""
    if len(text) <= width:
        return text, highlights
    first = highlights[0][0] if highlights else 0
    start = max(0, min(first - width // 3, len(text) - width))
    stop = start + width
    before, after = "…" if start else "", "…" if stop < len(text) else ""
    inner = range(start + len(before), stop - len(after))
    moved = [(max(a, inner.start) - start, min(b, inner.stop) - start) for a, b in highlights]
    return f"{before}{text[inner.start : inner.stop]}{after}", [(a, b) for a, b in moved if a < b]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"


def _marked(text: str, highlights: Iterable[tuple[int, int]]) -> str:
    """The text with what was found in bold."""
    out, at = [], 0
    for start, end in highlights:
        out += [inert(text[at:start]), "\x1b[1;33m", inert(text[start:end]), "\x1b[0m"]
        at = end
    return "".join([*out, inert(text[at:])])


def expiry_lines(retention: Retention) -> Iterator[str]:
    """What a tool is about to delete, and the change that would keep it from doing so."""
    number = len(retention.expiring)
    sessions = "1 session" if number == 1 else f"{number:,} sessions"
    set_by = "which is its default" if retention.is_default else "as its settings say"
    yield ""
    yield f"{sessions} the tool itself will delete within 7 days: after {retention.days} days without change,"
    if retention.trouble is not None:
        yield f"{set_by}; {inert(retention.settings)}"
        yield f"{retention.trouble}, so that another number there is not seen. All are kept here."
        return
    yield f"{set_by}. All are kept here. To keep them there as well:"
    yield ""
    yield from inert(retention.diff).splitlines()


def transcript_lines(session: Session, *, everything: bool = False, full: bool = False) -> Iterator[str]:
    """A session as it would be read aloud: who said what, and what the tools did."""
    summary = session.summary
    yield starred_title(summary, _WIDTH, summary.ref)
    yield f"{summary.ref} · {summary.workspace_path or 'no workspace'} · {_spelled(summary.created_at)}"
    yield from added_lines(summary)
    for message in session.messages:
        if not everything and (not message.is_active or message.role == "system" or message.is_sidechain):
            continue
        if message.role == "thinking" and not message.content:
            continue
        yield ""
        yield from _told(message, full)


def _spelled(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if at is not None else "time unknown"


def _told(message: Message, full: bool) -> Iterator[str]:
    inferred = "~" if message.timestamp_source not in (None, "stored") else ""
    time = f"{inferred}{_spelled(message.timestamp)}" if message.timestamp is not None else ""
    label = message.role + (f" ({message.kind})" if message.kind else "")
    if message.tool is not None:
        yield f"── {message.tool.name} · {message.tool.status} {time}".rstrip()
        yield from _tool_lines(message.tool, full)
        return
    yield f"── {label} {time}".rstrip()
    yield from inert(message.content).splitlines()
    for attachment in message.attachments:
        yield f"[{attachment.kind}{f' {attachment.name}' if attachment.name else ''}]"


def _tool_lines(tool: ToolCall, full: bool) -> Iterator[str]:
    asked = msgspec.json.encode(tool.params).decode()
    yield inert(asked) if full else one_line(asked, _WIDTH)
    lines = inert(tool.result or "").splitlines()
    shown = lines if full else lines[:_CUT]
    yield from (f"  {line if full else line[:_WIDTH]}" for line in shown)
    if len(lines) > len(shown):
        yield f"  … {len(lines) - len(shown):,} more lines (--full shows them)"
