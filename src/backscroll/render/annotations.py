"""Stars, tags, notes and renamed titles as text for terminals and pipes."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.terminal_text import cell_width, pad

_MAX_LINE_CHARS = 300


def starred_title(summary: SessionSummary, width: int, untitled: str) -> str:
    """Return the title in one line, with a star before it if the session is starred."""
    return f"{'★ ' if summary.is_starred else ''}{one_line(summary.title or untitled, width)}"


def format_tags(summary: SessionSummary) -> str:
    """Return the tags of a session in one line."""
    return _hashed(summary.tags)


def _hashed(tags: Iterable[str]) -> str:
    return one_line(" ".join(f"#{tag}" for tag in tags), _MAX_LINE_CHARS)


def tag_lines(counts: Mapping[str, int], *, is_terminal: bool) -> Iterator[str]:
    """Yield every tag with its number of sessions: aligned on a terminal, else separated by a tab."""
    shown = {f"#{one_line(tag, _MAX_LINE_CHARS)}": count for tag, count in counts.items()}
    width = max(map(cell_width, shown), default=0)
    for tag, count in shown.items():
        yield f"{pad(tag, width)}  {pluralize(count, 'session')}" if is_terminal else f"{tag[1:]}\t{count}"


def change_lines(before: SessionSummary, after: SessionSummary) -> Iterator[str]:
    """Yield one sentence for every annotation that has changed."""
    if before.is_starred != after.is_starred:
        yield "Added the star." if after.is_starred else "Removed the star."
    if added := [tag for tag in after.tags if tag not in before.tags]:
        yield f"Added {_hashed(added)}."
    if removed := [tag for tag in before.tags if tag not in after.tags]:
        yield f"Removed {_hashed(removed)}."
    yield from _note_changes(before, after)
    if before.original_title is not None and after.original_title is None:
        yield "Restored the tool's title."
    elif before.title != after.title:
        title = one_line(before.title or "", _MAX_LINE_CHARS)
        yield f'Renamed from "{title}".' if title else "Renamed."


def ignored_tag_lines(
    before: SessionSummary, *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> Iterator[str]:
    """Yield the tags to add that a session already had, and the tags to remove that it did not have."""
    add, remove = (dict.fromkeys(tag.strip().lstrip("#").lower() for tag in tags) for tags in (add, remove))
    if known := [tag for tag in add if tag in before.tags]:
        yield f"Already set: {_hashed(known)}."
    if unknown := [tag for tag in remove if tag not in before.tags]:
        yield f"Not set: {_hashed(unknown)}."


def _note_changes(before: SessionSummary, after: SessionSummary) -> Iterator[str]:
    old, new = ({note.number: note for note in summary.notes} for summary in (before, after))
    for number in sorted(old.keys() | new.keys()):
        if number not in old:
            yield f"Added note {number}."
        elif number not in new:
            yield f'Deleted note {number}: "{one_line(old[number].text, _MAX_LINE_CHARS)}"'
        elif old[number] != new[number]:
            yield f"Changed note {number}."


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
