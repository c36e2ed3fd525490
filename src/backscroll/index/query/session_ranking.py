"""Ranking of sessions for a query of several words.

Three rankings are computed and combined by reciprocal rank:

    strict         sessions with a message that has every word, as typed or in another form
    relaxed        sessions with a message that has some of the words; more and rarer words come first
    session text   sessions in which most was said about the words, in any message

A session has the place of its best subagent. The subagents follow after all sessions, see `subagents_last`.

The strict ranking ignores system messages and very long messages, which contain many words by chance. It
precedes the relaxed one if several sessions have such a message; with fewer, the match may be accidental.
A single session that matches strictly comes first in any case.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from backscroll.index.query.ranking import Hit
from backscroll.model.search import SearchRanks

__all__ = [
    "MIN_STRICT_SESSIONS",
    "RERANKED_SESSIONS",
    "FindParents",
    "combine_rankings",
    "continue_ranking",
    "rerank",
    "subagents_last",
]

# Takes ids of sessions and subagents. Returns the session of each subagent among them.
FindParents: TypeAlias = Callable[[Collection[int]], Mapping[int, int]]

MIN_STRICT_SESSIONS = 3
RERANKED_SESSIONS = 100
_COVERAGE_BONUS = 0.5
_RANK_SMOOTHING = 20  # reciprocal rank: 1 / (smoothing + rank)


def combine_rankings(
    strict: Sequence[Hit], relaxed: Sequence[Hit], by_session: Sequence[Hit], positions: Mapping[int, int]
) -> list[Hit]:
    """Return the sessions of all rankings that have a position to show, best first."""
    strict_ranks = _ranks(strict)
    relaxed_ranks = _ranks(relaxed)
    session_ranks = _ranks(by_session)
    if len(strict_ranks) >= MIN_STRICT_SESSIONS or len(strict_ranks) == 1:
        message_ranks = _ranks([*strict, *relaxed])
    else:
        message_ranks = _ranks([*relaxed, *strict])
    only_strict = next(iter(strict_ranks)) if len(strict_ranks) == 1 else None
    ranked = [
        Hit(
            session,
            position,
            _score(message_ranks.get(session)) + _score(session_ranks.get(session)),
            ranks=SearchRanks(
                strict_ranks.get(session), relaxed_ranks.get(session), session_ranks.get(session)
            ),
        )
        for session, position in positions.items()
        if session in message_ranks or session in session_ranks
    ]

    def order(hit: Hit) -> tuple[bool, float, int, int]:
        session_rank = session_ranks.get(hit.session, len(session_ranks) + 1)
        return hit.session != only_strict, -hit.score, session_rank, -hit.session

    return sorted(ranked, key=order)


def continue_ranking(ranked: Sequence[Hit], blocks: Iterable[list[Hit]]) -> Iterator[list[Hit]]:
    """Return the sessions that are not ranked, in their own order. Their scores are lower."""
    known = {hit.session for hit in ranked}
    rank = len(ranked)
    for block in blocks:
        others = [hit for hit in block if hit.session not in known]
        yield [
            Hit(hit.session, hit.position, _score(number) / 2)
            for number, hit in enumerate(others, start=rank + 1)
        ]
        rank += len(others)


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


def _score(rank: int | None) -> float:
    return 1 / (_RANK_SMOOTHING + rank) if rank is not None else 0.0


def _ranks(hits: Iterable[Hit]) -> dict[int, int]:
    """Return the rank of each session, from 1."""
    sessions = dict.fromkeys(hit.session for hit in hits)
    return {session: rank for rank, session in enumerate(sessions, start=1)}
