"""Stars, tags, notes and renamed titles as text for terminals and pipes."""

from collections.abc import Iterator
from datetime import datetime

from backscroll.model import SessionSummary
from backscroll.model.sanitize import one_line, sanitize

__all__ = ["annotated_session_lines", "annotation_lines", "format_tags", "starred_title"]

_MAX_LINE_CHARS = 300


def starred_title(summary: SessionSummary, width: int, untitled: str) -> str:
    """Return the title in one line, with a star before it if the session is starred."""
    return f"{'★ ' if summary.is_starred else ''}{one_line(summary.title or untitled, width)}"


def format_tags(summary: SessionSummary) -> str:
    """Return the tags of a session in one line."""
    return one_line(" ".join(f"#{tag}" for tag in summary.tags), _MAX_LINE_CHARS)


def annotation_lines(summary: SessionSummary) -> Iterator[str]:
    """Yield the original title, tags and notes of a session, as far as it has any."""
    if summary.original_title is not None:
        yield f"original title: {one_line(summary.original_title, _MAX_LINE_CHARS)}"
    if summary.tags:
        yield format_tags(summary)
    for note in summary.notes:
        edited = f", edited {_local_time(note.edited_at)}" if note.edited_at is not None else ""
        first, *rest = sanitize(note.text).splitlines() or [""]
        yield f"note {note.number} ({_local_time(note.written_at)}{edited}): {first}"
        yield from (f"  {line}" for line in rest)


def annotated_session_lines(summary: SessionSummary) -> Iterator[str]:
    """Yield title, ref and all annotations of a session."""
    yield starred_title(summary, _MAX_LINE_CHARS, "(untitled)")
    yield f"{one_line(summary.ref, _MAX_LINE_CHARS)}"
    yield from annotation_lines(summary)


def _local_time(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M")
