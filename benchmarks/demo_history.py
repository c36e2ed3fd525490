"""Synced demo history, and the questions and tasks that its sessions answer."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backscroll.config import NamedRoot
from backscroll.history.demo import write_demo
from backscroll.history.history import History

_QUESTION_FOLDER = Path(__file__).parent.parent / "tests" / "demo"
_ROOTS = {"claude-code": ".claude", "cursor": ".config/Cursor", "cursor-cli": ".cursor"}


@contextmanager
def synced_demo() -> Iterator[Callable[[], History]]:
    """Write the demo in a temporary folder, with its archive. Yield a function that opens it."""
    with tempfile.TemporaryDirectory(prefix="backscroll-demo-") as folder:
        demo = Path(folder) / "demo"
        roots = [NamedRoot(source, demo / path) for source, path in _ROOTS.items()]

        def open_demo() -> History:
            return History(roots=roots, home=demo / "archive")

        write_demo(demo)
        yield open_demo


def load_questions() -> list[dict[str, Any]]:
    """Return the questions with the sessions that answer them."""
    questions: list[dict[str, Any]] = _load("questions.json")["questions"]
    return questions


def load_tasks() -> list[dict[str, Any]]:
    """Return tasks that avoid the words of the history, with the sessions that help."""
    tasks: list[dict[str, Any]] = _load("tasks.json")
    return tasks


def load_held_out_tasks() -> dict[str, list[dict[str, Any]]]:
    """Return further tasks by set. Each set was written before it was first measured.

    The ranking was tuned with `load_tasks` and the second set. The third set was measured before the tuning,
    the fourth and the fifth only after it. Then 3 of the 10 tasks in the fifth set failed and led to one more
    change. Later changes were checked against all sets.
    """
    tasks: dict[str, list[dict[str, Any]]] = _load("held-out.json")
    return tasks


def _load(name: str) -> Any:
    return json.loads((_QUESTION_FOLDER / name).read_text(encoding="utf-8"))
