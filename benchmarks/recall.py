"""Whether a task worded as it comes to mind brings back the session that answers it."""

from collections.abc import Iterator

from backscroll.history import History
from benchmarks.demo import demo_history, held_out, questions, tasks
from benchmarks.figures import Figure
from benchmarks.stage import Stage

__all__ = ["figures", "places"]

_WANTED = 0.85  # of them among the first three


def figures(stage: Stage) -> Iterator[Figure]:
    """How many questions, and how many tasks in other words, have their session among the first three."""
    for name, found in places().items():
        ranks = list(found.values())
        yield Figure(
            key=f"recall {name}",
            what=f"the sessions for {len(ranks)} {name} among the first three of recall",
            value=sum(rank is not None and rank <= 3 for rank in ranks),
            unit="",
            wanted=_WANTED * len(ranks),
            more_is_better=True,
        )


def places() -> dict[str, dict[str, int | None]]:
    """Each question and each task with the place of the first session that answers it."""
    asked = {
        "questions": {one["question"]: set(one["sessions"]) for one in questions()},
        "tasks": {one["task"]: set(one["sessions"]) for one in tasks()},
    }
    for name, some in held_out().items():
        asked[f"tasks of the {name} set"] = {one["task"]: set(one["sessions"]) for one in some}
    with demo_history() as opened, opened() as history:
        return {
            name: {text: _place(history, text, ids) for text, ids in some.items()}
            for name, some in asked.items()
        }


def _place(history: History, task: str, answers: set[str]) -> int | None:
    found = history.recall(task).sessions
    return next((place for place, one in enumerate(found, 1) if one.session_id in answers), None)


if __name__ == "__main__":
    for name, found in places().items():
        print(f"{name}:")
        for text, place in found.items():
            print(f"{place or '-':>3}  {text}")
