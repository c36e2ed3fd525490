"""Recall finds the relevant sessions of the demo history for a task in everyday words."""

import json
from pathlib import Path

import msgspec
import pytest

from backscroll.documents import recall_document
from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.render.token_estimate import estimate_tokens

HERE = Path(__file__).parent
QUESTIONS = [
    (item["question"], item["sessions"])
    for item in json.loads((HERE / "questions.json").read_text(encoding="utf-8"))["questions"]
]
TASKS = [
    (item["task"], item["sessions"]) for item in json.loads((HERE / "tasks.json").read_text(encoding="utf-8"))
]
HELD_OUT = [
    (item["task"], item["sessions"])
    for group in json.loads((HERE / "held-out.json").read_text(encoding="utf-8")).values()
    for item in group
]


def test_every_task_names_a_session_that_exists(history: History) -> None:
    known = {session.id for session in history.all_sessions()}
    assert {id_ for _, ids in TASKS + HELD_OUT for id_ in ids} <= known
    assert len(TASKS) >= 20 and len(HELD_OUT) == 50


@pytest.mark.parametrize(
    ("asked", "share"),
    [(QUESTIONS, 0.85), (TASKS, 0.85), (HELD_OUT, 0.7)],
    ids=["questions", "tasks", "held-out"],
)
def test_the_relevant_session_is_among_the_first_three(
    history: History, asked: list[tuple[str, list[str]]], share: float
) -> None:
    found = [
        bool({session.session_id for session in history.recall(task).sessions[:3]} & set(ids))
        for task, ids in asked
    ]
    assert sum(found) >= share * len(asked)


@pytest.mark.parametrize("budget", [200, 300, 800, 1500, 6000])
def test_the_result_stays_within_the_token_budget(history: History, budget: int) -> None:
    for task, _ in QUESTIONS[::3]:
        document = recall_document(history.recall(task, token_budget=budget))
        assert estimate_tokens(msgspec.json.encode(document["data"]).decode()) <= budget


def test_an_excerpt_contains_prompt_and_outcome(history: History) -> None:
    (best, *_) = history.recall("did we ever try asyncio for the poller and what came of it?").sessions
    text = "\n".join(
        part
        for excerpt in best.excerpts
        for part in (excerpt.asked, excerpt.text, excerpt.outcome)
        if part is not None
    )
    assert "Would the poller be better with asyncio?" in text
    assert "37.1 against 38.2 ms" in text


def test_the_answer_is_shown_between_prompt_and_outcome(history: History) -> None:
    (best, *_) = history.recall("why did CI fail on windows only?").sessions
    (excerpt, *_) = best.excerpts
    assert excerpt.asked is not None and excerpt.asked.startswith("CI is red on windows only.")
    assert excerpt.text.startswith("Two things: `%20` is never decoded")
    assert excerpt.outcome is not None and excerpt.outcome.startswith("Green here.")


def test_a_message_that_contains_the_whole_task_is_shown(history: History) -> None:
    (best, *_) = history.recall("what happens to a departure that a correction removes?").sessions
    assert best.excerpts[0].role == "tool"
    assert '"Keep it with valid_until"' in best.excerpts[0].text


def test_the_text_of_a_subagent_is_an_excerpt_of_its_session(history: History) -> None:
    found = history.recall("anything that can store a wrong level: distinct on without order by")
    (review,) = [session for session in found.sessions if session.session_id.startswith("f841ceec")]
    excerpt = next(item for item in review.excerpts if item.agent_ref is not None)
    agent = history.get_session(excerpt.agent_ref or "")
    assert agent.messages[excerpt.message_index].content.startswith(excerpt.text[:40])


def test_recall_can_be_limited_to_a_workspace(history: History) -> None:
    found = history.recall("why is redis gone", workspace="tideline").sessions
    assert {session.workspace_name for session in found} <= {"tideline"}
    assert {session.workspace_name for session in history.recall("why is redis gone").sessions} >= {"saltern"}


def test_an_unknown_workspace_has_no_sessions(history: History) -> None:
    assert history.recall("redis", workspace="nowhere").sessions == ()


def test_too_small_a_budget_is_a_usage_error(history: History) -> None:
    with pytest.raises(UsageError, match="at least 200, not 10"):
        history.recall("redis", token_budget=10)
