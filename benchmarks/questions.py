"""Whether a question typed as it comes to mind finds the session that answers it."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history import History
from benchmarks.figures import Figure
from benchmarks.stage import Stage

__all__ = ["figures", "places"]

_QUESTIONS = Path(__file__).parent.parent / "tests" / "demo" / "questions.json"
_ROOTS = {"claude-code": ".claude", "cursor": ".config/Cursor", "cursor-cli": ".cursor"}


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
    questions = json.loads(_QUESTIONS.read_text(encoding="utf-8"))["questions"]
    with tempfile.TemporaryDirectory(prefix="backscroll-questions-") as folder:
        demo = Path(folder) / "demo"
        roots = [NamedRoot(source, demo / path) for source, path in _ROOTS.items()]
        with History(roots=roots, home=Path(folder) / "home") as history:
            history.write_demo(demo)
            history.sync()
            return {
                one["question"]: _place(history, one["question"], set(one["sessions"])) for one in questions
            }


def _place(history: History, question: str, answers: set[str]) -> int | None:
    data = history.search_sessions(question).data
    return next((place for place, match in enumerate(data, 1) if match.session_id in answers), None)


if __name__ == "__main__":
    for question, place in places().items():
        print(f"{place or '-':>3}  {question}")
