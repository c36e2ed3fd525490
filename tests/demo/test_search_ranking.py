"""A search with a question in everyday words finds the sessions that answer it."""

import json
from pathlib import Path

import pytest

from backscroll.history.history import History

QUESTIONS = json.loads((Path(__file__).parent / "questions.json").read_text(encoding="utf-8"))["questions"]


@pytest.fixture(scope="module")
def ranks(history: History) -> list[int]:
    """Return the rank of the first session that answers each question; 99 if it is not on the first page."""
    return [_rank(history, item["question"], set(item["sessions"])) for item in QUESTIONS]


def _rank(history: History, question: str, answers: set[str]) -> int:
    data = history.search_sessions(question).data
    return next((rank for rank, match in enumerate(data, 1) if match.session_id in answers), 99)


def test_nearly_every_answer_is_among_the_first_three(ranks: list[int]) -> None:
    assert sum(rank <= 3 for rank in ranks) >= len(QUESTIONS) - 1


def test_most_answers_come_first(ranks: list[int]) -> None:
    assert sum(rank == 1 for rank in ranks) >= len(QUESTIONS) * 0.8
