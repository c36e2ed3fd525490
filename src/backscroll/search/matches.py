"""Matches of a search: a hit with its message and the text to show."""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession, MessageKey
from backscroll.index.query.counts import By
from backscroll.index.query.ranking import Hit
from backscroll.index.results.highlights import Span, SpanStream
from backscroll.index.results.snippet import make_snippet
from backscroll.model import SearchMatch
from backscroll.model.searchable_text import ANNOTATIONS_POSITION

__all__ = ["By", "FoundMessage", "LearnSecrets", "RedactText", "build_matches", "message_key"]

RedactText = Callable[[str, str, int], str]  # text, session ref, message position
LearnSecrets = Callable[[set[int]], None]  # ids of sessions with text to redact


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


def message_key(hit: Hit) -> MessageKey:
    """Return session id and position of a hit."""
    return hit.session, hit.position
