"""Matches of a search: the text of a hit, the match to show, and the secrets to redact in it."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from backscroll.archive.archive import Archive
from backscroll.archive.query.messages import MessageInSession, MessageKey
from backscroll.index.highlights import Span, SpanStream, make_snippet
from backscroll.index.query import Clause, Query, Word
from backscroll.index.ranking import Hit
from backscroll.index.store import Index
from backscroll.model.export import SecretLocation
from backscroll.model.message import ANNOTATIONS_POSITION, Message
from backscroll.model.search import SearchMatch, annotations_text, paths_of, searchable_text
from backscroll.model.session import SessionSummary

if TYPE_CHECKING:
    from backscroll.redact import Redactor


# If too many messages match, the ranking prefers those with a rare word.
_SECRET_NAMES = (
    "password", "passwd", "passphrase", "passwort", "kennwort", "pwd", "pass", "secret", "credential",
    "credentials", "apikey", "token", "bearer", "key",
)  # fmt: skip
_BASE_SECRET_MESSAGES = 100
_SECRET_MESSAGES_PER_SESSION = 20
_MAX_SECRET_MESSAGES = 1000
RedactText = Callable[[str, str, int], str]  # text, session ref, message position


class FoundMessage(Struct, frozen=True):
    """A hit with its message, the text to show and the matches in it."""

    hit: Hit
    message: MessageInSession
    text: str
    spans: SpanStream | Iterable[Span | tuple[int, int]]
    is_title: bool = False  # the text is the title of the session


def build_matches(archive: Archive, found: list[FoundMessage], context: int) -> Iterator[SearchMatch]:
    """Yield the matches with snippets and the index of their session in the list."""
    indexes = archive.sessions.list_indexes({each.hit.session for each in found})
    for each in found:
        hit, summary, message = each.hit, each.message.summary, each.message.message
        is_note = hit.position == ANNOTATIONS_POSITION
        snippet = make_snippet(each.text, each.spans, context=context)
        yield SearchMatch(
            session_ref=summary.ref,
            session_id=summary.id,
            session_index=indexes.get(hit.session),
            source=summary.source,
            title=summary.title,
            workspace_name=summary.workspace_name,
            message_id=message.id,
            message_index=0 if is_note else hit.position,
            role=message.role,
            timestamp=message.timestamp,
            match=snippet.match,
            highlights=tuple(snippet.highlights),
            context=tuple(snippet.context),
            line_number=snippet.line_number,
            score=hit.score,
            match_count=hit.match_count,
            parent_ref=summary.parent_ref,
            ranks=hit.ranks,
            is_note=is_note,
            is_title=each.is_title,
        )


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


class Redaction:
    """Redacts the texts that a search shows."""

    def __init__(self, archive: Archive, index: Index, redactor: "Redactor") -> None:
        self._archive = archive
        self._index = index
        self._redactor = redactor

    def learn(self, sessions: Collection[int]) -> None:
        """Scan the messages of sessions that mention a secret by name, before any of their text is shown.

        A password has no recognizable form. It is recognized by the word before it ("password: …") and then
        redacted wherever it occurs. The index finds the few messages with such a word, so that a long session
        need not be read completely. For a subagent, the session that started it is scanned as well.
        """
        sessions = {*sessions, *self._archive.sessions.parents_of(sessions).values()}
        names = Clause(tuple(Word(name) for name in _SECRET_NAMES))
        query = Query((names,)).within(sessions)
        limit = _BASE_SECRET_MESSAGES + _SECRET_MESSAGES_PER_SESSION * len(sessions)
        limit = min(limit, _MAX_SECRET_MESSAGES)
        hits = self._index.search(query, limit=limit, by="message", with_counts=False).hits
        keys = [hit.key for hit in hits if hit.position != ANNOTATIONS_POSITION]
        self._redactor.scan(found.message for found in self._archive.messages.lookup(keys).values())

    def redact(self, text: str, ref: str, position: int) -> str:
        """Replace the secrets in a text of the message at a position of a session."""
        return self._redactor.redact_text(text, SecretLocation(ref, position))
