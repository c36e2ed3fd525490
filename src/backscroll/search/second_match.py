"""The second message to show for a session, if the words of a query are spread over several messages."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession
from backscroll.index import Index, Query
from backscroll.index.query.parser import Clause, SessionIds
from backscroll.index.results.highlights import SpanStream
from backscroll.index.results.snippet import make_snippet
from backscroll.model.search import SecondMatch
from backscroll.search.hit_text import load_hit_texts

__all__ = ["find_second_matches"]

_MAX_HITS = 200
_MAX_CANDIDATES = 3  # per session

Redact = Callable[[str, str, int], str]  # text, session ref, message position


def find_second_matches(
    archive: Archive,
    index: Index,
    query: Query,
    found: Mapping[int, tuple[int, set[int]]],
    locate: Callable[[str], SpanStream],
    redact: Redact | None,
) -> dict[int, SecondMatch]:
    """Return another message for each session, if one contains words that the first does not.

    ``found`` is the position of the first message of each session, and the words that it contains.
    """
    words = tuple(clause for clause in query.words if not clause.is_stop_word)
    if not found or len(words) < 2:
        return {}
    sessions = Clause((SessionIds(frozenset(found)),))
    hits = index.start_search(
        Query((*words, sessions)), limit=_MAX_HITS, by="message", match_any=True, with_counts=False
    ).hits
    candidates: defaultdict[int, list[int]] = defaultdict(list)
    for hit in hits:
        if hit.position != found[hit.session][0] and len(candidates[hit.session]) < _MAX_CANDIDATES:
            candidates[hit.session].append(hit.position)
    texts = load_hit_texts(
        archive, ((session, position) for session, positions in candidates.items() for position in positions)
    )
    second: dict[int, SecondMatch] = {}
    for session, position in _in_order(candidates):
        if session in second or (session, position) not in texts:
            continue
        message, text = texts[session, position]
        match = _match(message, text, position, found[session][1], locate, redact)
        if match is not None:
            second[session] = match
    return second


def _in_order(candidates: Mapping[int, list[int]]) -> Iterator[tuple[int, int]]:
    for session, positions in candidates.items():
        for position in positions:
            yield session, position


def _match(
    message: MessageInSession,
    text: str,
    position: int,
    known: set[int],
    locate: Callable[[str], SpanStream],
    redact: Redact | None,
) -> SecondMatch | None:
    text = redact(text, message.summary.ref, position) if redact is not None else text
    spans = locate(text)
    if spans.terms <= known:
        return None
    snippet = make_snippet(text, spans, context=0)
    return SecondMatch(
        message_id=message.message.id,
        message_index=position,
        role=message.message.role,
        timestamp=message.message.timestamp,
        match=snippet.match,
        highlights=tuple(snippet.highlights),
        line_number=snippet.line_number,
    )
