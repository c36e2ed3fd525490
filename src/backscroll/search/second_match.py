"""The second message to show for a session, if the words of a query are spread over several messages."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from msgspec.structs import replace

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
    if not found:
        return {}
    within = replace(query, clauses=(*query.clauses, Clause((SessionIds(frozenset(found)),))))
    hits = index.start_search(within, limit=_MAX_HITS, by="message", match_any=True, with_counts=False).hits
    candidates: defaultdict[int, list[int]] = defaultdict(list)
    for hit in hits:
        if hit.position != found[hit.session][0] and len(candidates[hit.session]) < _MAX_CANDIDATES:
            candidates[hit.session].append(hit.position)
    texts = load_hit_texts(
        archive, ((session, position) for session, positions in candidates.items() for position in positions)
    )
    second: dict[int, SecondMatch] = {}
    for session, positions in candidates.items():
        keys = [(session, position) for position in positions if (session, position) in texts]
        matches = (_match(*texts[key], key[1], found[session][1], locate, redact) for key in keys)
        match = next(filter(None, matches), None)
        if match is not None:
            second[session] = match
    return second


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
