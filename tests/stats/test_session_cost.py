"""The cost of a session in lists and documents is the one that `stats` computes."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings

from backscroll.config import NamedRoot
from backscroll.documents import to_document
from backscroll.history.history import History
from backscroll.model.session import Filter, SessionSummary
from backscroll.testing.claude_code import Transcript, fork
from tests.stats.histories import HISTORIES, SessionPlan, write_history

MODEL = "claude-opus-4-8"
USAGE = {
    "input_tokens": 1000,
    "output_tokens": 100,
    "cache_creation_input_tokens": 3000,
    "cache_read_input_tokens": 40_000,
}
PRICE = 'checked = 2026-11-16\n[[price]]\nmodels = ["{}"]\ninput = {}\noutput = 10\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "claude"


@pytest.fixture
def history(tmp_path: Path, root: Path) -> Iterator[History]:
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home") as history:
        yield history


def new_session(seed: int = 0, model: str = MODEL) -> Transcript:
    session = Transcript(version="2.1.325", start=datetime(2026, 10, 3, 9, 0, tzinfo=UTC), seed=seed)
    return session.user("go").assistant("Done.", usage=USAGE, model=model)


def only(history: History) -> SessionSummary:
    (summary,) = history.list_sessions().data
    assert history.find(summary.ref) == summary
    return summary


def test_a_cost_is_estimated_with_the_subagents_of_the_session(history: History, root: Path) -> None:
    session = new_session()
    session.delegate("count", "two")
    session.write(root)
    history.sync()
    found = history.list_sessions(Filter(with_subagents=True)).data
    summary, agent = sorted(found, key=lambda one: one.parent_ref is not None)
    total = history.statistics.report().total.cost_usd
    assert total is not None
    assert (summary.cost_usd, summary.cost_source) == (pytest.approx(total, abs=1e-6), "estimated")
    assert agent.cost_usd is not None
    assert agent.cost_source == "estimated"
    assert 0 < agent.cost_usd < total
    assert history.find(agent.ref) == agent


def test_the_total_of_the_tool_replaces_the_estimate(history: History, root: Path) -> None:
    session = new_session().cost(0.5, model=MODEL)
    session.write(root)
    fork(session, seed=3).user("more").assistant("So.", usage=USAGE, model=MODEL).cost(
        0.8, model=MODEL
    ).write(root)
    history.sync()
    found = history.list_sessions().data
    assert {one.cost_usd for one in found} == {0.5, 0.3}
    assert {one.cost_source for one in found} == {"reported"}


def test_a_session_without_a_price_has_no_cost(history: History, root: Path) -> None:
    new_session(model="unknown-model-7").write(root)
    history.sync()
    document = to_document(only(history))
    assert (document["cost_usd"], document["cost_source"]) == (None, None)


def test_a_changed_price_file_changes_the_cost(tmp_path: Path, root: Path) -> None:
    new_session(model="own-model").write(root)
    home = tmp_path / "home"
    home.mkdir()
    prices = tmp_path / "prices.toml"
    (home / "config.toml").write_text(f'prices = "{prices.as_posix()}"\n', encoding="utf-8")
    costs = []
    for price in ("1", "2.25", "2.25"):
        prices.write_text(PRICE.format("own-model", price), encoding="utf-8")
        with History(roots=[NamedRoot("claude-code", root)], home=home) as history:
            history.sync()
            costs.append(only(history).cost_usd)
            assert costs[-1] == pytest.approx(history.statistics.report().total.cost_usd)
    assert costs[0] is not None
    assert costs[0] < costs[1] == costs[2]


def test_costs_are_known_while_another_process_writes_the_archive(history: History, root: Path) -> None:
    new_session().write(root)
    history.sync()
    with closing(sqlite3.connect(history.archive_path, isolation_level=None)) as writer:
        writer.execute("begin immediate")
        assert only(history).cost_source == "estimated"
        assert writer.execute("select count(*) from price").fetchone() == (0,)
    history.close()
    assert only(history).cost_source == "estimated"


@settings(max_examples=20)
@given(HISTORIES)
def test_every_session_costs_what_stats_computes(scratch: Path, plans: list[SessionPlan]) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    write_history(scratch / "claude", plans)
    with History(roots=[NamedRoot("claude-code", scratch / "claude")], home=scratch / "home") as history:
        history.sync()
        for summary in history.list_sessions().data:
            explained = history.statistics.explain_session(summary.ref)
            usd = explained.usd
            if summary.cost_source == "reported":
                assert explained.reported is not None
                usd = explained.reported.usd
            assert summary.cost_usd == (None if usd is None else pytest.approx(usd, abs=1e-6))
