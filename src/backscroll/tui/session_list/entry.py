"""List entries: a session, or a session with a search match."""

from datetime import datetime

from msgspec import Struct

from backscroll.model import SearchMatch, SessionSummary
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.annotations import format_tags, starred_title
from backscroll.render.terminal.humanize import compact_count, format_age

__all__ = ["Entry", "match_entry", "session_entry"]

MAX_FIELD_CHARS = 400
MAX_CHARS_BEFORE_MATCH = 24  # keeps the first match visible in a narrow list


class Entry(Struct, frozen=True):
    """One entry: title, details and, for a search match, an excerpt. Each takes one line."""

    ref: str
    title: str
    details: str
    excerpt: str = ""
    highlights: tuple[tuple[int, int], ...] = ()  # spans in the excerpt
    position: int | None = None  # of the matching message


def session_entry(summary: SessionSummary, now: datetime) -> Entry:
    """Return the entry of a session."""
    details = [
        format_age(summary.updated_at, now),
        summary.workspace_name or "no workspace",
        summary.source,
        compact_count(summary.message_count, "message"),
        compact_count(summary.total_tokens, "token") if summary.total_tokens else "",
        "gone" if summary.is_gone else "",
        "" if summary.completeness == "complete" else summary.completeness,
        format_tags(summary),
    ]
    untitled = summary.first_message_preview or "(untitled)"
    return Entry(
        summary.ref,
        starred_title(summary, MAX_FIELD_CHARS, untitled),
        _join_details(details),
    )


def match_entry(match: SearchMatch, now: datetime) -> Entry:
    """Return the entry of a search match."""
    details = [
        format_age(match.timestamp, now),
        match.workspace_name or "no workspace",
        match.source,
        "subagent" if match.parent_ref is not None else "",
        match.place,
        pluralize(match.match_count, "match", "matches") if match.match_count > 1 else "",
    ]
    excerpt, highlights = _excerpt(match)
    return Entry(
        match.session_ref,
        one_line(match.title or match.session_ref, MAX_FIELD_CHARS),
        _join_details(details),
        excerpt,
        highlights,
        None if match.is_note else match.message_index,
    )


def _join_details(details: list[str]) -> str:
    return " · ".join(one_line(detail, MAX_FIELD_CHARS) for detail in details if detail)


def _excerpt(match: SearchMatch) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the sanitized text around the first highlight, and the highlights in it."""
    text, start = match.match, 0
    if match.highlights and match.highlights[0][0] > MAX_CHARS_BEFORE_MATCH:
        start = match.highlights[0][0] - MAX_CHARS_BEFORE_MATCH
    start += len(text[start:]) - len(text[start:].lstrip())
    parts, highlights, offset = ["…" if text[:start].strip() else ""], [], start
    for first, end in match.highlights:
        if first < offset or first - start > MAX_FIELD_CHARS:
            continue
        parts.append(_in_one_line(text[offset:first]))
        length = sum(map(len, parts))
        parts.append(_in_one_line(text[first:end]))
        highlights.append((length, length + len(parts[-1])))
        offset = end
    parts.append(_in_one_line(text[offset : start + MAX_FIELD_CHARS]))
    return "".join(parts), tuple(highlights)


def _in_one_line(text: str) -> str:
    return sanitize(text).replace("\n", " ").replace("\t", " ")
