"""Questions as people type them find the sessions that answer them."""

import json
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing.demo import Demo

QUESTIONS = json.loads((Path(__file__).parent / "questions.json").read_text(encoding="utf-8"))["questions"]


@pytest.fixture(scope="module")
def places(written: Demo, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """Where the first session stands that answers a question, from 1; 99 when it is not on the first page."""
    roots = [NamedRoot(name, Path(root)) for name, root in written.roots.items()]
    with History(roots=roots, home=tmp_path_factory.mktemp("archive")) as history:
        history.sync()
        return [_place(history, one["question"], set(one["sessions"])) for one in QUESTIONS]


def _place(history: History, question: str, answers: set[str]) -> int:
    data = history.search_sessions(question).data
    return next((place for place, match in enumerate(data, 1) if match.session_id in answers), 99)


def test_nearly_every_question_has_its_answer_among_the_first_three(places: list[int]) -> None:
    assert sum(place <= 3 for place in places) >= len(QUESTIONS) - 1


def test_most_questions_have_their_answer_first(places: list[int]) -> None:
    assert sum(place == 1 for place in places) >= len(QUESTIONS) * 0.8
