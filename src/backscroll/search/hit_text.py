"""The text in which the index found a hit."""

from collections.abc import Iterable

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession, MessageKey
from backscroll.model import Message, SessionSummary
from backscroll.model.searchable_text import ANNOTATIONS_POSITION, annotations_text, paths_of, searchable_text

__all__ = ["load_hit_texts", "text_with_paths", "title_of"]


def load_hit_texts(
    archive: Archive, keys: Iterable[MessageKey], required_bytes: tuple[bytes, ...] = ()
) -> dict[MessageKey, tuple[MessageInSession, str]]:
    """Return the message and the searchable text of each hit. Annotations come with the first message.

    Messages can be omitted if their encoded form does not contain all ``required_bytes``.
    """
    all_keys = set(keys)
    annotated = {(session, 0) for session, position in all_keys if position == ANNOTATIONS_POSITION}
    messages = archive.messages.lookup(
        (key for key in all_keys if key[1] != ANNOTATIONS_POSITION), required_bytes
    )
    messages |= archive.messages.lookup(annotated - messages.keys()) if annotated else {}
    found: dict[MessageKey, tuple[MessageInSession, str]] = {}
    for session, position in all_keys:
        is_annotation = position == ANNOTATIONS_POSITION
        message = messages.get((session, 0 if is_annotation else position))
        if message is None:
            continue
        text = annotations_text(message.summary) if is_annotation else text_with_paths(message.message)
        found[session, position] = message, text
    return found


def text_with_paths(message: Message) -> str:
    """Return the text of a message and the paths that it does not contain."""
    text = searchable_text(message)
    missing = [path for path in paths_of(message) if path not in text]
    return "\n".join([text, *missing]) if missing else text


def title_of(summary: SessionSummary) -> str:
    """Return the searchable title: the tool's own. A title set by the user is part of the annotations."""
    return summary.original_title or summary.title or ""
