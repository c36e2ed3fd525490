"""Whether a question typed as it comes to mind finds the session that answers it."""

from collections.abc import Iterator

from backscroll.history import History
from benchmarks.demo import demo_history, questions
from benchmarks.figures import Figure
from benchmarks.stage import Stage

__all__ = ["figures", "places"]


def figures(stage: Stage) -> Iterator[Figure]:
    """How many of the demo's questions have their answer first, and among the first three."""
    found = list(places().values())
    total = len(found)
    for most in (1, 3):
        yield Figure(
            key=f"questions {most}",
            what=f"the answers to {total} questions among the first {most}",
            value=sum(place is not None and place <= most for place in found),
            unit="",
            wanted=total if most == 3 else None,
            more_is_better=True,
        )


def places() -> dict[str, int | None]:
    """Each question with the place of the first session that answers it; None when it is not among twenty."""
    with demo_history() as opened, opened() as history:
        return {
            one["question"]: _place(history, one["question"], set(one["sessions"])) for one in questions()
        }


def _place(history: History, question: str, answers: set[str]) -> int | None:
    data = history.search_sessions(question).data
    return next((place for place, match in enumerate(data, 1) if match.session_id in answers), None)


if __name__ == "__main__":
    for question, place in places().items():
        print(f"{place or '-':>3}  {question}")
