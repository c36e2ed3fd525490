"""Rank of the session that answers a task, when the task is passed to recall."""

from collections.abc import Iterator

from backscroll.history.history import History
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.demo_history import load_held_out_tasks, load_questions, load_tasks, synced_demo
from benchmarks.result_table import Result

_TARGET_FRACTION = 0.85  # of the tasks in the top three


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Count the questions and the reworded tasks that have their session in the top three."""
    for name, rank_by_task in answer_ranks().items():
        ranks = list(rank_by_task.values())
        yield Result(
            key=f"recall {name}",
            label=f"Recall quality, {len(ranks)} {name}, session in the top 3",
            value=sum(rank is not None and rank <= 3 for rank in ranks),
            unit="",
            target=_TARGET_FRACTION * len(ranks),
            higher_is_better=True,
        )


def answer_ranks() -> dict[str, dict[str, int | None]]:
    """Return the rank of the first answering session by set and task."""
    task_sets = {
        "questions": {question["question"]: set(question["sessions"]) for question in load_questions()},
        "tasks": {task["task"]: set(task["sessions"]) for task in load_tasks()},
    }
    for name, tasks in load_held_out_tasks().items():
        task_sets[f"tasks of the {name} set"] = {task["task"]: set(task["sessions"]) for task in tasks}
    with synced_demo() as open_demo, open_demo() as history:
        return {
            name: {text: _answer_rank(history, text, answer_ids) for text, answer_ids in tasks.items()}
            for name, tasks in task_sets.items()
        }


def _answer_rank(history: History, task: str, answer_ids: set[str]) -> int | None:
    sessions = history.recall(task).sessions
    return next((rank for rank, session in enumerate(sessions, 1) if session.session_id in answer_ids), None)


if __name__ == "__main__":
    for name, rank_by_task in answer_ranks().items():
        print(f"{name}:")
        for text, rank in rank_by_task.items():
            print(f"{rank or '-':>3}  {text}")
