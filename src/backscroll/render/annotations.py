"""What people have added to a session, as text that is safe for any terminal."""

from collections.abc import Iterator

from backscroll.model import SessionSummary
from backscroll.model.sanitize import inert, one_line
from backscroll.render.session_header import moment

__all__ = ["added_lines", "noted_lines", "starred_title", "tag_words"]

_WIDTH = 300


def starred_title(summary: SessionSummary, width: int, unnamed: str) -> str:
    """A title in one line, with a star before it when there is one."""
    return f"{'★ ' if summary.is_starred else ''}{one_line(summary.title or unnamed, width)}"


def tag_words(summary: SessionSummary) -> str:
    """The tags of a session in a row."""
    return one_line(" ".join(f"#{tag}" for tag in summary.tags), _WIDTH)


def added_lines(summary: SessionSummary) -> Iterator[str]:
    """Tags, the tool's own title and notes; nothing where there are none."""
    if summary.original_title is not None:
        yield f"renamed; in the tool: {one_line(summary.original_title, _WIDTH)}"
    if summary.tags:
        yield tag_words(summary)
    for note in summary.notes:
        edited = f", edited {moment(note.edited_at)}" if note.edited_at is not None else ""
        first, *rest = inert(note.text).splitlines() or [""]
        yield f"note {note.number} ({moment(note.written_at)}{edited}): {first}"
        yield from (f"  {line}" for line in rest)


def noted_lines(summary: SessionSummary) -> Iterator[str]:
    """A session with all that people have added to it."""
    yield starred_title(summary, _WIDTH, "(no words)")
    yield f"{one_line(summary.ref, _WIDTH)}"
    yield from added_lines(summary)
