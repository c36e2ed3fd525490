"""Rank of the one session that answers a question, in a history with huge messages and long sessions.

The development half may be looked at question by question, and the ranking may be tuned with it. Of the
held-out half, only the totals are printed. Do not look at its individual results: it shows whether a
change also helps questions that nobody tuned for.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from backscroll.history.history import History
from backscroll.model.session import Session
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.demo_history import load_questions as load_demo_questions
from benchmarks.result_table import Result
from benchmarks.retrieval.bm25 import Bm25
from benchmarks.retrieval.corpus import HALVES, load_questions, load_sessions
from benchmarks.retrieval.history import archived_id, synced_corpus

Rank: TypeAlias = int | None  # None: outside the first 20
RankSessions: TypeAlias = Callable[[str], Sequence[str]]

_PAGE_SIZE = 20
_METHODS = {"questions": ("search", "recall", "bm25"), "keywords": ("search", "bm25")}


class RankedQuery(Struct, frozen=True):
    """Query with the rank of its session."""

    text: str
    rank: Rank


class Measurement(Struct, frozen=True):
    """Ranks of one method for the questions or keyword queries of one set."""

    query_set: str
    kind: str  # questions or keywords
    method: str
    queries: tuple[RankedQuery, ...]

    def hit_rate(self, limit: int) -> float:
        """Return the percentage of queries whose session is among the first ``limit``."""
        hits = sum(query.rank is not None and query.rank <= limit for query in self.queries)
        return 100 * hits / len(self.queries)

    @property
    def mean_reciprocal_rank(self) -> float:
        return sum(1 / query.rank for query in self.queries if query.rank is not None) / len(self.queries)


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure the share of queries whose session is in first place, and in the top five."""
    for measurement in measure_all():
        name = f"{measurement.query_set} {measurement.kind}"
        for limit in (1, 5):
            yield Result(
                key=f"retrieval {name} {measurement.method} {limit}",
                label=f"Retrieval, {len(measurement.queries)} {name}, {measurement.method}, hit@{limit}",
                value=measurement.hit_rate(limit),
                unit="%",
                higher_is_better=True,
            )


def measure_all() -> list[Measurement]:
    """Return the ranks of all sets, kinds and methods."""
    with synced_corpus() as history:
        methods = _rank_functions(history)
        return [
            Measurement(query_set, kind, method, _rank_queries(methods[method], queries))
            for query_set, kind, queries in _query_sets()
            for method in _METHODS[kind]
        ]


def _query_sets() -> Iterator[tuple[str, str, list[tuple[str, set[str]]]]]:
    """Yield name, kind and queries of each set. A query comes with the ids of its sessions."""
    id_by_session = {session.id: archived_id(session) for session in load_sessions()}
    for half in HALVES:
        questions = load_questions(half)
        yield half, "questions", [(each.question, {id_by_session[each.session]}) for each in questions]
        yield half, "keywords", [(each.keywords, {id_by_session[each.session]}) for each in questions]
    demo_questions = [(each["question"], set(each["sessions"])) for each in load_demo_questions()]
    yield "demo", "questions", demo_questions


def _rank_functions(history: History) -> dict[str, RankSessions]:
    bm25 = Bm25({summary.id: _prose(history.get_session(summary.ref)) for summary in history.all_sessions()})
    return {
        "search": lambda query: [match.session_id for match in history.search_sessions(query).data],
        "recall": lambda query: [session.session_id for session in history.recall(query).sessions],
        "bm25": bm25.rank,
    }


def _prose(session: Session) -> str:
    return "\n".join(message.content for message in session.messages if message.role in ("user", "assistant"))


def _rank_queries(
    rank_sessions: RankSessions, queries: Sequence[tuple[str, set[str]]]
) -> tuple[RankedQuery, ...]:
    return tuple(RankedQuery(text, first_rank(rank_sessions(text), ids)) for text, ids in queries)


def first_rank(found_ids: Sequence[str], answer_ids: set[str]) -> Rank:
    """Return the rank of the first answer on the first page."""
    page = list(dict.fromkeys(found_ids))[:_PAGE_SIZE]
    return next((rank for rank, id_ in enumerate(page, 1) if id_ in answer_ids), None)


def print_table(measurements: Sequence[Measurement]) -> None:
    """Print a line per measurement with its hit rates and the mean reciprocal rank."""
    print(f"{'set':<12} {'queries':<14} {'method':<8} {'hit@1':>6} {'hit@5':>6} {'hit@20':>6} {'MRR':>6}")
    for each in measurements:
        rates = " ".join(f"{each.hit_rate(limit):5.0f}%" for limit in (1, 5, 20))
        queries = f"{len(each.queries)} {each.kind}"
        print(
            f"{each.query_set:<12} {queries:<14} {each.method:<8} {rates} {each.mean_reciprocal_rank:>6.3f}"
        )


def _print_development_ranks(measurements: Sequence[Measurement]) -> None:
    """Print a line per query with its rank by method. A minus means outside the first 20."""
    for kind, methods in _METHODS.items():
        columns = [each for each in measurements if (each.query_set, each.kind) == ("development", kind)]
        print(" ".join(f"{method:>6}" for method in methods), f" {kind} of the development half")
        for row in zip(*(column.queries for column in columns), strict=True):
            print(" ".join(f"{query.rank or '-':>6}" for query in row), f" {row[0].text}")
        print()


if __name__ == "__main__":
    start = time.perf_counter()
    all_measurements = measure_all()
    _print_development_ranks(all_measurements)
    print_table(all_measurements)
    print(f"{time.perf_counter() - start:.0f} s")
