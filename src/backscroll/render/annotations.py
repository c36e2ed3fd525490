"""What people have added to a session, as text that is safe for any terminal."""

from collections.abc import Iterator

from backscroll.model import SessionSummary
from backscroll.model.sanitize import one_line, sanitize
from backscroll.render.session_header import format_time

__all__ = ["annotated_session_lines", "annotation_lines", "format_tags", "starred_title"]

_WIDTH = 300


def starred_title(summary: SessionSummary, width: int, unnamed: str) -> str:
    """A title in one line, with a star before it when there is one."""
    return f"{'★ ' if summary.is_starred else ''}{one_line(summary.title or unnamed, width)}"


def format_tags(summary: SessionSummary) -> str:
    """The tags of a session in a row."""
    return one_line(" ".join(f"#{tag}" for tag in summary.tags), _WIDTH)


def annotation_lines(summary: SessionSummary) -> Iterator[str]:
    """Tags, the tool's own title and notes; nothing where there are none."""
    if summary.original_title is not None:
        yield f"renamed; in the tool: {one_line(summary.original_title, _WIDTH)}"
    if summary.tags:
        yield format_tags(summary)
    for note in summary.notes:
        edited = f", edited {format_time(note.edited_at)}" if note.edited_at is not None else ""
        first, *rest = sanitize(note.text).splitlines() or [""]
        yield f"note {note.number} ({format_time(note.written_at)}{edited}): {first}"
        yield from (f"  {line}" for line in rest)


def annotated_session_lines(summary: SessionSummary) -> Iterator[str]:
    """A session with all that people have added to it."""
    yield starred_title(summary, _WIDTH, "(no words)")
    yield f"{one_line(summary.ref, _WIDTH)}"
    yield from annotation_lines(summary)
