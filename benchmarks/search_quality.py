"""Rank of the session that answers a question, when the question itself is the search query."""

from collections.abc import Iterator

from backscroll.history.history import History
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.demo_history import load_questions, synced_demo
from benchmarks.result_table import Result


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Count the demo questions that have an answer in first place, and in the top three."""
    ranks = list(answer_ranks().values())
    total = len(ranks)
    for limit in (1, 3):
        yield Result(
            key=f"search quality top {limit}",
            label=f"Search quality, {total} questions, answer in the top {limit}",
            value=sum(rank is not None and rank <= limit for rank in ranks),
            unit="",
            target=total if limit == 3 else None,
            higher_is_better=True,
        )


def answer_ranks() -> dict[str, int | None]:
    """Return the rank of the first answering session by question; None outside the first page of 20."""
    with synced_demo() as open_demo, open_demo() as history:
        return {
            question["question"]: _answer_rank(history, question["question"], set(question["sessions"]))
            for question in load_questions()
        }


def _answer_rank(history: History, question: str, answer_ids: set[str]) -> int | None:
    matches = history.search_sessions(question).data
    return next((rank for rank, match in enumerate(matches, 1) if match.session_id in answer_ids), None)


if __name__ == "__main__":
    for question, rank in answer_ranks().items():
        print(f"{rank or '-':>3}  {question}")
