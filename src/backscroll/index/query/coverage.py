"""How much of a query the messages of a session contain, weighted by the rarity of the words."""

import math

import tantivy

from backscroll.index.engine.background import BackgroundTask
from backscroll.index.query.compile import CompiledQuery, QueryPart
from backscroll.index.query.counts import count_by_session
from backscroll.index.query.elements import in_sessions

__all__ = ["rarity", "session_coverage"]


def session_coverage(
    searcher: tantivy.Searcher, query: CompiledQuery, parts: list[QueryPart], sessions: set[int]
) -> dict[int, float]:
    """Return the summed rarity of the parts that the messages of each session contain."""
    coverage = dict.fromkeys(sessions, 0.0)
    if not sessions:
        return coverage
    sessions_query = in_sessions(sessions)

    def sessions_with(parts: list[QueryPart]) -> list[list[int]]:
        counts = (count_by_session(searcher, query.within(part.anywhere, sessions_query)) for part in parts)
        return [[bucket["key"] for bucket in buckets] for buckets in counts]

    half = len(parts) // 2
    second_half = BackgroundTask(lambda: sessions_with(parts[half:]))
    first_half = sessions_with(parts[:half])
    for part, found in zip(parts, first_half + second_half.result(), strict=True):
        part_rarity = rarity(searcher, part)
        for session in found:
            coverage[session] += part_rarity
    return coverage


def rarity(searcher: tantivy.Searcher, part: QueryPart) -> float:
    """Return the weight of a part: the fewer messages contain it, the higher."""
    frequency = sum(searcher.doc_freq(field, term) for field, term in part.terms)
    return part.weight * math.log1p(searcher.num_docs / (frequency + 1)) if part.terms else 1.0
