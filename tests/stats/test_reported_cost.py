"""The tool's own totals, next to the computed cost."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.render.statistics import report_document, report_lines
from backscroll.render.terminal_text import Style
from backscroll.testing.claude_code import Transcript, fork

ONE = "10000000-0000-4000-8000-000000000000"
TWO = "20000000-0000-4000-8000-000000000000"
START = datetime(2026, 10, 3, 9, 0, tzinfo=UTC)
MODEL = "claude-opus-4-8"
USAGE = {
    "input_tokens": 1000,
    "output_tokens": 100,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "claude"


@pytest.fixture
def history(tmp_path: Path, root: Path) -> Iterator[History]:
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home") as history:
        yield history


def new_session(id_: str = ONE, **options: object) -> Transcript:
    session = Transcript(id_, version="2.1.325", start=START, **options)  # type: ignore[arg-type]
    return session.user("go").assistant("Done.", usage=USAGE, model=MODEL)


def text(history: History) -> str:
    report = history.statistics.report()
    return "\n".join(report_lines(report, style=Style(is_colored=False), width=200))


def test_the_last_total_counts_and_is_compared_with_the_computed_cost(history: History, root: Path) -> None:
    session = new_session().cost(0.01, model=MODEL).cost(0.01, model=MODEL)
    session.cost(0.5, model=MODEL, output_tokens=1000).write(root)
    new_session(TWO, seed=5).write(root)
    history.sync()
    report = history.statistics.report()
    assert report.total.reported_usd == pytest.approx(0.5)
    assert report.reported is not None
    assert report.reported.sessions == 1
    assert report.reported.computed_usd == pytest.approx((report.total.cost_usd or 0) / 2)
    assert report.reported.tokens == 40 + 1000 + 60_000 + 2400
    assert "$0.50 reported by the tool for 1 session, $0.49 more than computed" in text(history)
    assert "The tool also counts requests that are not in its transcripts" in text(history)
    document = json.loads(json.dumps(report_document(report)))
    assert document["reported"]["difference_usd"] == pytest.approx(0.4925)
    (row,) = history.statistics.report(by="model").rows
    assert row.reported_usd == pytest.approx(0.5)


def test_a_total_equal_to_the_computed_cost_needs_no_reason(history: History, root: Path) -> None:
    new_session().cost(0.0075, model=MODEL).write(root)
    history.sync()
    assert "reported by the tool for 1 session, as computed" in text(history)
    assert "The tool" not in text(history)


def test_a_forked_session_adds_only_what_it_spent_itself(history: History, root: Path) -> None:
    session = new_session().cost(0.01, model=MODEL)
    forked = fork(session, remap=False)
    forked.now = session.now + timedelta(hours=1)
    forked.user("more").assistant("Yes.", usage=USAGE, model=MODEL)
    forked.cost(0.03, model=MODEL, output_tokens=1000)
    session.now += timedelta(hours=2)
    session.user("again").assistant("Sure.", usage=USAGE, model=MODEL)
    session.cost(0.015, model=MODEL, output_tokens=950)
    session.write(root)
    forked.write(root)
    history.sync()
    assert history.statistics.report().total.reported_usd == pytest.approx(0.015 + 0.02)
    reported = [history.transcript.reported_cost(history.find(one.session_id)) for one in (session, forked)]
    assert reported == [pytest.approx(0.015), pytest.approx(0.02)]
    explained = history.statistics.explain_session(forked.session_id).reported
    assert explained is not None
    assert explained.usd == pytest.approx(0.02)


def test_a_total_that_begins_again_is_added(history: History, root: Path) -> None:
    session = new_session().cost(0.01, model=MODEL, started_at_ms=1_791_000_000_000)
    session.user("more").assistant("Yes.", usage=USAGE, model=MODEL)
    session.cost(0.02, model=MODEL, started_at_ms=1_791_000_900_000).write(root)
    history.sync()
    assert history.statistics.report().total.reported_usd == pytest.approx(0.03)


def test_only_totals_within_the_time_span_count(history: History, root: Path) -> None:
    session = new_session().cost(0.01, model=MODEL)
    session.now = START + timedelta(days=2)
    session.user("more").assistant("Yes.", usage=USAGE, model=MODEL)
    session.cost(0.03, model=MODEL, output_tokens=1000).write(root)
    history.sync()
    report = history.statistics.report(Filter(since=START + timedelta(days=1)))
    assert report.total.reported_usd == pytest.approx(0.02)
    days = history.statistics.report(by="day", zone=UTC).rows
    assert [row.reported_usd for row in days] == [pytest.approx(0.01), pytest.approx(0.02)]


def test_a_total_is_updated_when_lines_are_appended_and_after_a_rebuild(history: History, root: Path) -> None:
    session = new_session().cost(0.01, model=MODEL)
    session.write(root)
    history.sync()
    session.user("more").assistant("Yes.", usage=USAGE, model=MODEL)
    session.cost(0.03, model=MODEL, output_tokens=1000).write(root)
    history.sync()
    assert history.statistics.report().total.reported_usd == pytest.approx(0.03)
    history.archive_admin.rebuild()
    assert history.statistics.report().total.reported_usd == pytest.approx(0.03)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"totalCostUSD": "much"},
        {"totalCostUSD": -1, "modelUsage": []},
        {"totalCostUSD": True},
        {"totalCostUSD": 1e300, "startTime": "then"},
        {"totalCostUSD": 0.5, "modelUsage": {"": 1, "a": {"costUSD": "x", "inputTokens": -5}}},
    ],
)
def test_an_odd_total_does_no_harm(fields: dict[str, object], history: History, root: Path) -> None:
    new_session().state("cost-state", **fields).write(root)
    assert not history.sync().problems
    total = history.statistics.report().total
    assert total.reported_usd == (0.5 if fields.get("modelUsage") else None)
    assert total.tokens is not None
