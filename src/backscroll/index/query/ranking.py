"""Order of hits, grouping by session, paging."""

import math
from collections.abc import Iterator

from msgspec import Struct

from backscroll.model.search import SearchRanks

__all__ = ["DAY_MS", "Hit", "Row", "first_per_session", "rank_block", "take_page"]

DAY_MS = 86_400_000
_RECENCY_BONUS = 0.25
_HALF_LIFE_DAYS = 90.0

Row = tuple[float, int, int, int | None]  # score, session, position, timestamp in milliseconds


class Hit(Struct, frozen=True, gc=False):
    """A matching message, with the number of matches in its session if hits are grouped."""

    session: int
    position: int
    score: float
    match_count: int = 1
    matches_all: bool = True  # the session has every word; known after counting
    ranks: SearchRanks | None = None  # of a session

    @property
    def is_strict(self) -> bool:
        """Whether the message has every word, as far as known."""
        return self.ranks is not None and self.ranks.all_words is not None


def rank_block(rows: list[Row], today: int) -> list[Hit]:
    """Sort by score with a small bonus for recent messages.

    The bonus depends on the day, not the time, so that pages of the same day are consistent.
    """
    bonus = _RecencyBonus(today)
    keys = [
        (-score * bonus[at // DAY_MS], -at, session, position)
        if at is not None
        else (-score, 0, session, position)
        for score, session, position, at in rows
    ]
    keys.sort()
    return [Hit(session, position, -score) for score, _, session, position in keys]


class _RecencyBonus(dict[int, float]):
    """Cache of the score factor of each day: 1.25 for today, decreasing to 1."""

    def __init__(self, today: int) -> None:
        self._today = today

    def __missing__(self, day: int) -> float:
        self[day] = 1.0 + _RECENCY_BONUS * math.exp2(-max(0, self._today - day) / _HALF_LIFE_DAYS)
        return self[day]


def first_per_session(blocks: Iterator[list[Hit]]) -> Iterator[list[Hit]]:
    """Keep only the first hit of each session."""
    seen: set[int] = set()
    for block in blocks:
        first: list[Hit] = []
        for hit in block:
            if hit.session not in seen:
                seen.add(hit.session)
                first.append(hit)
        yield first


def take_page(blocks: Iterator[list[Hit]], *, limit: int, offset: int) -> list[Hit]:
    """Return one page of hits. Reads no more blocks than necessary."""
    hits: list[Hit] = []
    seen = 0
    for block in blocks:
        hits += block[max(0, offset - seen) :]
        seen += len(block)
        if len(hits) >= limit:
            break
    return hits[:limit]
