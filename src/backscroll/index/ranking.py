"""Order of hits, weights of fields and words, grouping by session, and the ranking of sessions.

For a query of several words, three rankings are combined:

    strict         sessions with a message that has every word, as typed or in another form
    relaxed        sessions with a message that has some of the words; more and rarer words come first
    session text   sessions in which most was said about the words, in any message

The score of a session is the sum of a message score and its session text score, each relative to the best
one. The message score is the relaxed score, or the strict one if the session is not in the relaxed ranking.
Ranks instead of scores would ignore how much better the first session is than the second: with them, 6 %
fewer questions of LoCoMo find the right session first.

The strict ranking ignores system messages and very long messages, which contain many words by chance. Its
sessions get a bonus if there are at least three. Two may match by accident. A single one comes first.

A session takes the best place among itself and its subagents. These follow after all sessions, with the
exceptions in `subagents_last`.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.search import SearchRanks

# Weights of a word in a message: in what was said, in calls and results of tools, as part of an identifier.
FIELD_WEIGHTS = {"prose": 2.0, "tool_text": 1.0, "subwords": 0.5}
SESSION_FIELD_WEIGHTS = {"session_text": 1.0, "session_title": 1.0}
SESSION_TIE_BREAKER = 0.3  # weight of the other field or form
# Weights of other words than those that were typed.
INFLECTION_WEIGHT = 0.7
SYNONYM_WEIGHT = 0.7
COMMON_WORD_WEIGHT = 0.3
LANGUAGE_SCORE = 2.0  # of a message in the language of the query
DAY_MS = 86_400_000
_RECENCY_BONUS = 0.25
_HALF_LIFE_DAYS = 90.0
Row = tuple[float, int, int, int | None]  # score, session, position, timestamp in milliseconds
# Takes ids of sessions and subagents. Returns the session of each subagent among them.
FindParents: TypeAlias = Callable[[Collection[int]], Mapping[int, int]]
_MIN_STRICT_SESSIONS = 3
RERANKED_SESSIONS = 100
_COVERAGE_BONUS = 0.5
_STRICT_BONUS = 0.2  # the best relaxed score and the best session text score are 1


class Hit(Struct, frozen=True, gc=False):
    """A matching message, with the number of matches in its session if hits are grouped."""

    session: int
    position: int
    score: float
    match_count: int = 1
    matches_all: bool = True  # the session has every word; known after counting
    ranks: SearchRanks | None = None  # of a session

    @property
    def key(self) -> tuple[int, int]:
        """Session id and position of the message."""
        return self.session, self.position

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


def combine_rankings(
    strict: Sequence[Hit], relaxed: Sequence[Hit], by_session: Sequence[Hit], positions: Mapping[int, int]
) -> list[Hit]:
    """Return the sessions of all rankings that have a position to show, best first."""
    strict_ranks, relaxed_ranks, session_ranks = map(_ranks, (strict, relaxed, by_session))
    session_scores = _relative_scores(by_session)
    message_scores = _relative_scores(relaxed)
    if len(strict_ranks) >= _MIN_STRICT_SESSIONS or len(strict_ranks) == 1:
        for session, score in _relative_scores(strict).items():
            message_scores[session] = message_scores.get(session, score) + _STRICT_BONUS
    else:
        others = dict.fromkeys(strict_ranks, 0.0) if relaxed else _relative_scores(strict)
        message_scores = others | message_scores
    only_strict = next(iter(strict_ranks)) if len(strict_ranks) == 1 else None
    ranked = []
    for session, position in positions.items():
        if session in message_scores or session in session_scores:
            ranks = SearchRanks(
                strict_ranks.get(session),
                relaxed_ranks.get(session),
                session_ranks.get(session),
                message_scores.get(session, 0.0),
                session_scores.get(session, 0.0),
            )
            ranked.append(Hit(session, position, ranks.message_score + ranks.session_score, ranks=ranks))

    def order(hit: Hit) -> tuple[bool, float, int, int]:
        session_rank = session_ranks.get(hit.session, len(session_ranks) + 1)
        return hit.session != only_strict, -hit.score, session_rank, -hit.session

    return sorted(ranked, key=order)


def continue_ranking(ranked: Sequence[Hit], blocks: Iterable[list[Hit]]) -> Iterator[list[Hit]]:
    """Return the sessions that are not ranked, in their own order. Their scores are lower."""
    known = {hit.session for hit in ranked}
    lowest = min((hit.score for hit in ranked), default=1.0)
    count = 0
    for block in blocks:
        others = [hit for hit in block if hit.session not in known]
        yield [
            Hit(hit.session, hit.position, lowest / (1 + number))
            for number, hit in enumerate(others, start=count + 1)
        ]
        count += len(others)


def subagents_last(hits: Sequence[Hit], parents: Mapping[int, int]) -> list[Hit]:
    """Move subagents behind the sessions if their own session is among the hits, too.

    The session then has the best place of them all, so that one conversation does not fill a page. A subagent
    stays if only its own message has every word.
    """
    if not parents:
        return list(hits)
    by_session = {hit.session: hit for hit in hits}
    sessions: dict[int, Hit] = {}
    subagents: list[Hit] = []
    for hit in hits:
        parent = by_session.get(parents.get(hit.session, hit.session))
        if parent is None or parent is hit or (hit.is_strict and not parent.is_strict):
            sessions.setdefault(hit.session, hit)
        else:
            sessions.setdefault(parent.session, replace(parent, score=max(parent.score, hit.score)))
            subagents.append(hit)
    lowest = min((hit.score for hit in sessions.values()), default=0.0)
    return [*sessions.values(), *(replace(hit, score=min(hit.score, lowest)) for hit in subagents)]


def rerank(hits: list[Hit], coverage: Mapping[int, float]) -> list[Hit]:
    """Sort the best sessions by score plus a bonus for the parts that any of their messages contains."""
    reranked = [
        Hit(hit.session, hit.position, hit.score + _COVERAGE_BONUS * coverage[hit.session])
        for hit in hits[:RERANKED_SESSIONS]
    ]
    return sorted(reranked, key=lambda hit: -hit.score) + hits[RERANKED_SESSIONS:]


def _relative_scores(hits: Sequence[Hit]) -> dict[int, float]:
    """Return the score of each session relative to the best one."""
    best = max((hit.score for hit in hits), default=0.0) or 1.0
    return {hit.session: hit.score / best for hit in reversed(hits)}


def _ranks(hits: Iterable[Hit]) -> dict[int, int]:
    """Return the rank of each session, from 1."""
    sessions = dict.fromkeys(hit.session for hit in hits)
    return {session: rank for rank, session in enumerate(sessions, start=1)}
