"""What people add to sessions, written into the archive and found again."""

from collections.abc import Iterable

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession, MessageKey
from backscroll.model import Message
from backscroll.model.searchable_text import ANNOTATIONS_POSITION, annotations_text, paths_of, searchable_text

__all__ = ["load_hit_texts"]


def load_hit_texts(
    archive: Archive, places: Iterable[MessageKey], having: tuple[bytes, ...] = ()
) -> dict[MessageKey, tuple[MessageInSession, str]]:
    """What was found at these places, and the text that it was found in; notes with the first message.

    Messages that do not have some bytes as they are packed may be left out.
    """
    wanted = set(places)
    noted = {(number, 0) for number, position in wanted if position == ANNOTATIONS_POSITION}
    passages = archive.messages.lookup(
        (place for place in wanted if place[1] != ANNOTATIONS_POSITION), having
    )
    passages |= archive.messages.lookup(noted - passages.keys()) if noted else {}
    found: dict[MessageKey, tuple[MessageInSession, str]] = {}
    for number, position in wanted:
        passage = passages.get((number, 0 if position == ANNOTATIONS_POSITION else position))
        if passage is None:
            continue
        is_note = position == ANNOTATIONS_POSITION
        found[number, position] = (
            passage,
            annotations_text(passage.summary) if is_note else _with_paths(passage.message),
        )
    return found


def _with_paths(message: Message) -> str:
    """The text of a message, and those of its paths that are not in it."""
    text = searchable_text(message)
    missing = [path for path in paths_of(message) if path not in text]
    return "\n".join([text, *missing]) if missing else text
