"""What the engine found, in the order in which people see it."""

import math
from collections.abc import Iterator, Sequence

import tantivy
from msgspec import Struct

__all__ = ["DAY", "Hit", "Row", "Scored", "best_of", "first_per_session", "rank_block", "take_page"]

DAY = 86_400_000  # milliseconds
_RECENT_BONUS = 0.25
_HALF_LIFE_DAYS = 90.0

Scored = tuple[float, tantivy.DocAddress]
Row = tuple[float, int, int, int | None]  # score, session, position, time


class Hit(Struct, frozen=True, gc=False):
    """A message that was found; when found for its session, with how many others of it were."""

    session: int
    position: int
    score: float
    match_count: int = 1


def best_of(found: Sequence[list[Scored]], number: int) -> list[Scored]:
    """So many of the best of several lists, as the engine would order them; the higher score counts."""
    first, *others = found
    least = first[-1][0] if len(first) == number else 0.0
    better = {_place(hit): hit for hits in others for hit in hits if hit[0] >= least}
    if not better:
        return first
    rest = [hit for hit in first if _place(hit) not in better]
    return sorted([*better.values(), *rest], key=lambda hit: (-hit[0], _place(hit)))[:number]


def _place(hit: Scored) -> tuple[int, int]:
    return hit[1].segment_ord, hit[1].doc


def rank_block(rows: list[Row], today: int) -> list[Hit]:
    """The best first. What was said lately counts a little more; by the day, so that today's pages fit."""
    bonus = _Bonus(today)
    weighed = [
        (-score * bonus[at // DAY], -at, session, position)
        if at is not None
        else (-score, 0, session, position)
        for score, session, position, at in rows
    ]
    weighed.sort()
    return [Hit(session, position, -score) for score, _, session, position in weighed]


class _Bonus(dict[int, float]):
    """By how much more a day's messages count: up to a quarter."""

    def __init__(self, today: int) -> None:
        self._today = today

    def __missing__(self, day: int) -> float:
        self[day] = 1.0 + _RECENT_BONUS * math.exp2(-max(0, self._today - day) / _HALF_LIFE_DAYS)
        return self[day]


def first_per_session(blocks: Iterator[list[Hit]]) -> Iterator[list[Hit]]:
    """Of each session the first hit alone."""
    seen: set[int] = set()
    for block in blocks:
        fresh: list[Hit] = []
        for hit in block:
            if hit.session not in seen:
                seen.add(hit.session)
                fresh.append(hit)
        yield fresh


def take_page(blocks: Iterator[list[Hit]], *, limit: int, offset: int) -> list[Hit]:
    """Some hits from an offset on; no more blocks are asked for than that takes."""
    found: list[Hit] = []
    passed = 0
    for block in blocks:
        found += block[max(0, offset - passed) :]
        passed += len(block)
        if len(found) >= limit:
            break
    return found[:limit]
