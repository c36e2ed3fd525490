"""What people add to sessions, written into the archive and found again."""

from collections.abc import Iterable

from backscroll.archive import Archive, Passage, Place
from backscroll.index.engine.documents import Spoken
from backscroll.ingest.index_documents import searchable
from backscroll.model import Message, SessionSummary
from backscroll.model.annotation import NOTES
from backscroll.model.message_paths import paths_of

__all__ = ["noted", "notes_text", "texts"]


def notes_text(summary: SessionSummary) -> str:
    """All that people have added to a session, a line or more each: its new title, tags and notes."""
    title = summary.title if summary.original_title is not None else None
    tags = " ".join(f"#{tag}" for tag in summary.tags)
    return "\n".join(part for part in (title, tags, *(note.text for note in summary.notes)) if part)


def noted(summary: SessionSummary) -> Spoken | None:
    """What the index is told of a session's notes, as if they were one more message."""
    text = notes_text(summary)
    if not text:
        return None
    last = max((note.edited_at or note.written_at for note in summary.notes), default=summary.updated_at)
    at = int(last.timestamp() * 1000) if last is not None else None
    return Spoken(position=NOTES, role="note", at=at, text=text)


def texts(
    archive: Archive, places: Iterable[Place], having: tuple[bytes, ...] = ()
) -> dict[Place, tuple[Passage, str]]:
    """What was found at these places, and the text that it was found in; notes with the first message.

    Messages that do not have some bytes as they are packed may be left out.
    """
    wanted = set(places)
    noted = {(number, 0) for number, position in wanted if position == NOTES}
    passages = archive.passages((place for place in wanted if place[1] != NOTES), having)
    passages |= archive.passages(noted - passages.keys()) if noted else {}
    found: dict[Place, tuple[Passage, str]] = {}
    for number, position in wanted:
        passage = passages.get((number, 0 if position == NOTES else position))
        if passage is None:
            continue
        is_note = position == NOTES
        found[number, position] = (
            passage,
            notes_text(passage.summary) if is_note else _with_paths(passage.message),
        )
    return found


def _with_paths(message: Message) -> str:
    """The text of a message, and those of its paths that are not in it."""
    text = searchable(message)
    missing = [path for path in paths_of(message) if path not in text]
    return "\n".join([text, *missing]) if missing else text
