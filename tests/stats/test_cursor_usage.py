"""Statistics of Cursor sessions: best-of-N attempts, and the cost that Cursor stored."""

import json
from pathlib import Path
from typing import Any

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.testing import cursor

PARENT, WINNER, LOSER, CANDIDATE = (f"be570000-0000-4000-8000-00000000000{n}" for n in range(4))


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "Cursor")


def open_history(home: cursor.Home, tmp_path: Path) -> History:
    home.write()
    history = History(roots=[NamedRoot("cursor", home.root)], home=tmp_path / "home")
    history.sync()
    return history


def add_attempt(home: cursor.Home, id: str, tokens: int, **data: Any) -> None:
    answer = cursor.assistant("Done.", tokenCount={"inputTokens": tokens, "outputTokens": 0})
    home.composer(
        [cursor.user("Try it"), answer],
        id=id,
        name=id,
        has_graph=False,
        head={"isBestOfNSubcomposer": True},
        data={"isBestOfNSubcomposer": True, **data},
    )


@pytest.mark.parametrize("has_parent", [True, False])
def test_tokens_of_attempts_that_lost_do_not_count(
    home: cursor.Home, has_parent: bool, tmp_path: Path
) -> None:
    if has_parent:
        children = {"subComposerIds": [WINNER, LOSER, CANDIDATE], "isBestOfNParent": True}
        home.composer([cursor.user("Try it")], id=PARENT, has_graph=False, data=children)
    add_attempt(home, WINNER, 10, bestOfNJudgeWinner=True)
    add_attempt(home, LOSER, 1000, bestOfNJudgeWinner=False)
    add_attempt(home, CANDIDATE, 5)
    with open_history(home, tmp_path) as history:
        found = {one.id: one.total_tokens for one in history.all_sessions(Filter(with_subagents=True))}
        total = history.statistics.report().total
        assert total.tokens is not None
        assert total.tokens.total == 15
        if not has_parent:
            assert found == {WINNER: 10, LOSER: None, CANDIDATE: 5}
            return
        assert found == {PARENT: 15, WINNER: 10, LOSER: 1000, CANDIDATE: 5}
        explained = history.statistics.explain_session(PARENT)
        assert {record.agent_id: record.fate for record in explained.records} == {
            WINNER: "counted",
            LOSER: "discarded",
            CANDIDATE: "counted",
        }


def test_the_cost_that_cursor_stored_is_the_reported_cost(home: cursor.Home, tmp_path: Path) -> None:
    usage = {"gpt-4": {"costInCents": 12, "amount": 3}, "default": {"costInCents": 0.5, "amount": 1}}
    composer = home.composer([cursor.user("What is it?")], generation=2, data={"usageData": usage})
    copied_from = {"composerId": composer.id, "at": 1_800_000_000_000}
    home.composer([cursor.user("Copied")], data={"usageData": usage, "copiedFrom": copied_from})
    home.composer([cursor.user("Later")], data={"usageData": {}})
    with open_history(home, tmp_path) as history:
        for _ in range(2):
            report = history.statistics.report(by="model")
            assert report.total.reported_usd == pytest.approx(0.125)
            assert {row.key: row.reported_usd for row in report.rows} == {
                "gpt-4": pytest.approx(0.12),
                None: pytest.approx(0.005),
            }
            assert report.reported is not None
            assert (report.reported.sessions, report.reported.tokens) == (1, None)
            assert history.transcript.reported_cost(history.find(composer.id)) == pytest.approx(0.125)
            # A later version of Cursor removes the cost.
            home.put(composer.key, json.dumps({**composer.data, "usageData": {}}))
            home.write()
            assert history.sync().rewritten
