"""Recall by synonyms, which weigh less than the words themselves."""

from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.index.query import is_common_word
from backscroll.search.recall import synonyms
from backscroll.testing.claude_code import Transcript


@pytest.fixture
def history(tmp_path: Path) -> History:
    sessions = [
        ("The photo on the landing page is too heavy", "It is resized while the page is built."),
        ("Remove the folder of old snapshots", "All of them are gone."),
        ("Why does the invoice show two totals?", "The tax was counted twice."),
        ("Let the tests run on each push", "They do."),
    ]
    for number, (prompt, answer) in enumerate(sessions, start=1):
        one = Transcript(f"{number}0000000-0000-4000-8000-000000000000", seed=number, cwd="/home/zoe/shop")
        one.user(prompt).assistant(answer).write(tmp_path / "claude")
    history = History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home")
    history.sync()
    return history


@pytest.mark.parametrize(
    ("task", "first"),
    [
        ("the picture on the homepage loads slowly", "1"),
        ("delete the directory with backups", "2"),
        ("the bill has a wrong sum, amount appears double", "3"),
    ],
)
def test_a_session_is_recalled_by_synonyms(history: History, task: str, first: str) -> None:
    with history:
        (best, *_) = history.recall(task).sessions
        assert best.session_id.startswith(first)
        assert best.excerpts, "messages found by synonyms are shown too"


def test_a_word_weighs_more_than_its_synonyms(history: History) -> None:
    with history:
        (best, *_) = history.recall("snapshots").sessions
        assert best.session_id.startswith("2")


def test_a_session_is_recalled_by_the_name_of_its_project(tmp_path: Path) -> None:
    for number, place in enumerate(("harbour", "lantern", "meadow"), start=1):
        one = Transcript(
            f"{number}0000000-0000-4000-8000-000000000000", seed=number, cwd=f"/home/zoe/{place}"
        )
        one.user("The tests fail at night").assistant("A clock was wrong.").write(tmp_path / "claude")
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:
        history.sync()
        for task, first in (("why do tests of the lantern fail?", "2"), ("Meadow: tests fail*d", "3")):
            assert history.recall(task).sessions[0].session_id.startswith(first)


def test_a_long_session_with_every_word_ranks_after_a_relevant_one(
    tmp_path: Path,
) -> None:
    long = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/x")
    for number in range(300):
        word = ("mirror", "garden", "window", "ladder", "shadow")[number % 5]
        long.user(f"Look at the {word} {number}").assistant("Done.")
    long.write(tmp_path / "claude")
    about = Transcript("20000000-0000-4000-8000-000000000000", seed=2, cwd="/home/zoe/x")
    about.user("The shadow in the mirror is cut off").assistant("The window was too small for it.")
    about.write(tmp_path / "claude")
    for number in range(3, 9):
        other = Transcript(f"{number}0000000-0000-4000-8000-000000000000", seed=number, cwd="/home/zoe/x")
        other.user(f"Nothing of note, number {number}").assistant("Indeed.").write(tmp_path / "claude")
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:
        history.sync()
        (best, *_) = history.recall("is the shadow of the ladder in the mirror all right?").sessions
        assert best.session_id.startswith("2")


def test_synonyms_include_all_inflections() -> None:
    assert {"image", "images", "photo"} <= set(synonyms("pictures"))
    assert {"delete", "deleted", "dropped"} <= set(synonyms("removing"))
    assert synonyms("ferry") == ()


@given(st.text())
def test_any_text_can_be_looked_up(word: str) -> None:
    assert word not in synonyms(word)
    assert isinstance(is_common_word(word), bool)


def test_every_group_of_synonyms_has_at_least_two_different_lower_case_words() -> None:
    lines = files("backscroll.search").joinpath("synonyms.txt").read_text("utf-8").splitlines()
    groups = [line.split() for line in lines if not line.startswith("#")]
    assert len(groups) > 200
    assert all(len(set(group)) == len(group) > 1 for group in groups)
    assert all(word.isalnum() and word == word.lower() for group in groups for word in group)
