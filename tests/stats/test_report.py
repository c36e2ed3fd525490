"""Statistics: active time, time spans, models without a price, and explanations of usage records."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from backscroll.config import NamedRoot
from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.model.session import Filter, SessionSummary
from backscroll.model.statistics import UsageRecord
from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls

ONE = "10000000-0000-4000-8000-000000000000"
START = datetime(2026, 10, 3, 22, 50, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "claude"


@pytest.fixture
def history(tmp_path: Path, root: Path) -> Iterator[History]:
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home") as history:
        yield history


def subagents(history: History) -> list[SessionSummary]:
    sessions = history.all_sessions(Filter(with_subagents=True))
    return [one for one in sessions if one.parent_ref is not None]


def add_prompt(at: datetime, text: str, session: Transcript) -> None:
    session.user(text, timestamp=at.strftime("%Y-%m-%dT%H:%M:%S.000Z"))


def test_active_time_is_the_sum_of_gaps_under_five_minutes(history: History, root: Path) -> None:
    session = Transcript(ONE, start=START)
    for minutes in (0, 4, 8, 13, 14, 60):
        add_prompt(START + timedelta(minutes=minutes), "on", session)
    session.write(root)
    history.sync()
    assert history.statistics.report().total.active_seconds == (4 + 4 + 1) * 60


def test_active_time_of_overlapping_sessions_is_added(history: History, root: Path) -> None:
    for seed in (1, 2):
        session = Transcript(f"{seed}0000000-0000-4000-8000-000000000000", start=START, seed=seed)
        add_prompt(START, "on", session)
        add_prompt(START + timedelta(minutes=3), "on", session)
        session.write(root)
    history.sync()
    assert history.statistics.report().total.active_seconds == 2 * 180


def test_days_are_in_the_requested_time_zone(history: History, root: Path) -> None:
    session = Transcript(ONE, start=START)
    for hours in (0, 2):
        add_prompt(START + timedelta(hours=hours), "on", session)
    session.write(root)
    history.sync()

    def days(zone: timezone) -> list[tuple[str | None, int | None]]:
        return [(row.key, row.prompts) for row in history.statistics.report(by="day", zone=zone).rows]

    assert days(UTC) == [("2026-10-03", 1), ("2026-10-04", 1)]
    assert days(timezone(timedelta(hours=5, minutes=45))) == [("2026-10-04", 2)]
    assert [row.key for row in history.statistics.report(by="week", zone=UTC).rows] == ["2026-W40"]
    assert [row.key for row in history.statistics.report(by="month", zone=UTC).rows] == ["2026-10"]


def test_a_day_with_a_clock_change_is_complete(history: History, root: Path) -> None:
    zone = ZoneInfo("Europe/Berlin")  # on this day 25 hours long
    session = Transcript(ONE)
    for hour, minute in ((21, 45), (22, 15), (22, 45)):
        session.assistant("so", timestamp=f"2026-10-25T{hour}:{minute}:00.000Z")
    session.write(root)
    history.sync()
    days = {row.key: row.responses for row in history.statistics.report(by="day", zone=zone).rows}
    assert days == {"2026-10-25": 3}
    assert len(history.statistics.explain_day(date(2026, 10, 25), zone=zone).records) == 3
    assert not history.statistics.explain_day(date(2026, 10, 26), zone=zone).records


def test_only_messages_within_the_time_span_count(history: History, root: Path) -> None:
    session = Transcript(ONE, start=START).user("before").assistant("yes")
    session.wait(2 * 86_400)
    session.user("within").user("within").assistant("yes").wait(86_400)
    session.user("after").assistant("yes").write(root)
    history.sync()
    span = Filter(since=datetime(2026, 10, 5, tzinfo=UTC), until=datetime(2026, 10, 6, tzinfo=UTC))
    total = history.statistics.report(span).total
    assert (total.sessions, total.prompts, total.messages, total.responses) == (1, 2, 3, 1)
    assert history.statistics.report(Filter(since=datetime(2027, 1, 1, tzinfo=UTC))).total.sessions == 0


def test_a_model_without_a_price_is_listed_and_excluded_from_the_cost(history: History, root: Path) -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": 0}
    session = Transcript(ONE).user("a").assistant("b", usage=usage, model="claude-opus-4-5")
    session.assistant("c", usage=usage, model="next-year-1").write(root)
    history.sync()
    report = history.statistics.report()
    assert (report.total.cost_usd, report.total.unpriced_tokens) == (5.0, 1_000_000)
    assert [(model.model, model.tokens) for model in report.unpriced] == [("next-year-1", 1_000_000)]
    rows = {row.key: row.cost_usd for row in history.statistics.report(by="model").rows}
    assert rows == {"claude-opus-4-5": 5.0, "next-year-1": None}


def test_a_custom_price_table_is_used(history: History, root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('prices = "mine.toml"\n', encoding="utf-8")
    own = 'checked = 2027-01-01\n[[price]]\nmodels = ["next-year-1"]\ninput = 2.5\noutput = 1\n'
    (home / "mine.toml").write_text(own, encoding="utf-8")
    usage = {"input_tokens": 1_000_000, "output_tokens": 0}
    Transcript(ONE).user("a").assistant("b", usage=usage, model="next-year-1").write(root)
    history.sync()
    report = history.statistics.report()
    assert (report.total.cost_usd, str(report.prices_checked)) == (2.5, "2027-01-01")
    assert not report.unpriced


def test_the_cost_reported_by_the_tool_is_a_separate_value(history: History, root: Path) -> None:
    session = Transcript(ONE, version="0.2.60").user("a").assistant("b").assistant("c")
    session.write(root)
    history.sync()
    costs = [
        record["costUSD"] for record in session.records if isinstance(record, dict) and "costUSD" in record
    ]
    total = history.statistics.report().total
    assert total.reported_usd == pytest.approx(sum(costs))
    assert total.cost_usd is not None
    assert total.cost_usd != pytest.approx(total.reported_usd)


def fates(records: tuple[UsageRecord, ...]) -> list[str]:
    return [record.fate for record in records]


def test_a_record_that_repeats_a_response_is_a_stream_duplicate(history: History, root: Path) -> None:
    Transcript(ONE).user("a").assistant("b", thinking="hm", tools=[tool_calls.bash("ls")]).write(root)
    history.sync()
    explained = history.statistics.explain_session(ONE)
    assert fates(explained.records) == ["counted", "stream duplicate", "stream duplicate"]
    assert explained.records[0].reason == "the largest counts of its 3 records"


@pytest.mark.parametrize(
    ("copy", "fate", "word"), [(resume, "replay", "produced it first"), (fork, "fork prefix", "forked from")]
)
def test_the_explanation_of_a_copied_response_names_the_session_that_counts_it(
    copy: object, fate: str, word: str, history: History, root: Path
) -> None:
    assert callable(copy)
    first = Transcript(ONE).user("a").assistant("b")
    second = copy(first)
    second.user("c").assistant("d").write(root)
    first.write(root)
    history.sync()
    assert fates(history.statistics.explain_session(ONE).records) == ["counted"]
    explained = history.statistics.explain_session(second.session_id)
    assert fates(explained.records) == [fate, "counted"]
    assert word in explained.records[0].reason
    assert f"claude-code:{ONE}" in explained.records[0].reason


def test_a_response_copied_by_a_forked_subagent_is_a_subagent_copy(history: History, root: Path) -> None:
    session = Transcript(ONE).user("a").assistant("b")
    session.fork_agent("go on", "done")
    session.write(root)
    history.sync()
    explained = history.statistics.explain_session(ONE)
    assert sorted(fates(explained.records)) == ["counted", "counted", "subagent copy"]
    assert explained.tokens.total == history.find(ONE).total_tokens


def test_the_charges_of_a_session_add_up_to_its_cost(history: History, root: Path) -> None:
    usage = {
        "input_tokens": 1000,
        "output_tokens": 200,
        "cache_creation_input_tokens": 300,
        "cache_read_input_tokens": 5000,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
    }
    session = Transcript(ONE).user("a").assistant("b", model="claude-opus-4-5")
    last = session.records[-1]
    assert isinstance(last, dict)
    last["message"]["usage"] = usage
    session.write(root)
    history.sync()
    (charge,) = history.statistics.explain_session(ONE).charges
    assert [line[:3] for line in charge.lines] == [
        ("input", 1000, 5.0),
        ("output", 200, 25.0),
        ("cache_write", 100, 6.25),
        ("cache_write_1h", 200, 10.0),
        ("cache_read", 5000, 0.5),
    ]
    assert charge.usd == pytest.approx(0.005 + 0.005 + 0.000625 + 0.002 + 0.0025)
    assert history.statistics.report().total.cost_usd == pytest.approx(charge.usd)


def test_explaining_a_subagent_refers_to_its_session(history: History, root: Path) -> None:
    session = Transcript(ONE).user("a").delegate("look", "found")
    session.write(root)
    history.sync()
    (agent_id,) = history.find(ONE).agent_ids
    with pytest.raises(UsageError, match=f"Explain its session: claude-code:{ONE}"):
        history.statistics.explain_session(agent_id)


def test_a_forgotten_session_is_not_in_the_statistics(history: History, root: Path) -> None:
    Transcript(ONE).user("a").run(tool_calls.bash("ls")).write(root)
    history.sync()
    history.archive_admin.forget(ONE)
    total = history.statistics.report().total
    assert (total.sessions, total.messages, total.tool_calls, total.tokens) == (0, 0, 0, None)
    assert history.statistics.report(by="day").rows == ()


def test_a_response_with_only_empty_text_has_a_model_a_time_and_a_cost(history: History, root: Path) -> None:
    session = Transcript(ONE, start=START).user("go").assistant("", model="claude-opus-4-8")
    session.write(root)
    history.sync()
    total = history.statistics.report().total
    assert total.unpriced_tokens == 0
    assert total.cost_usd
    (record,) = history.statistics.explain_session(ONE).records
    assert record.model == "claude-opus-4-8"
    assert record.at is not None
    assert history.find(ONE).models == ("claude-opus-4-8",)
    assert [row.key for row in history.statistics.report(by="model").rows] == ["claude-opus-4-8"]


def test_an_inlined_subagent_has_the_models_and_the_summed_tokens_of_its_responses(
    history: History, root: Path
) -> None:
    session = Transcript(ONE, version="1.0.69", start=START).user("go")
    session.delegate("Look", "Seen.", calls=[tool_calls.grep("x", ["a.py"])]).assistant("Done.")
    session.write(root)
    history.sync()
    (agent,) = subagents(history)
    records = [
        record for record in history.statistics.explain_session(ONE).records if record.fate == "counted"
    ]
    assert len(records) == 4
    assert agent.models == (session.release.model,)
    assert agent.total_tokens == sum(record.tokens.total for record in records[1:3])


def test_the_models_of_a_session_are_without_those_of_its_inlined_subagents(
    history: History, root: Path
) -> None:
    session = Transcript(ONE, version="1.0.69", start=START).user("go")
    session.delegate("Look", "Seen.").assistant("Done.")
    for record in session.records:
        if record.get("isSidechain") and record["type"] == "assistant":
            record["message"]["model"] = "claude-haiku-4-5"
    session.write(root)
    history.sync()
    assert history.find(ONE).models == (session.release.model,)
    assert [agent.models for agent in subagents(history)] == [("claude-haiku-4-5",)]


def test_the_model_of_a_subagent_is_the_one_in_its_lines(history: History, root: Path) -> None:
    session = Transcript(ONE, version="2.1.212", start=START).user("go").delegate("Look", "Seen.")
    session.records[-1]["toolUseResult"]["resolvedModel"] = "claude-opus-4-8[1m]"
    session.agents[0].records[-1]["message"]["model"] = "claude-opus-4-8"
    session.write(root)
    history.sync()
    (agent,) = subagents(history)
    assert agent.models == ("claude-opus-4-8",)


def write_two_sources_of_activity(root: Path) -> None:
    """Write a resumed session, another workspace with another model, and a subagent."""
    first = Transcript(ONE, start=START, cwd="/home/zoe/quay").user("one").assistant("1").user("two")
    first.run(tool_calls.bash("true", "done"), text="run")
    first.write(root)
    resume(first).user("three").assistant("3").write(root)
    for number in range(1, 4):
        Transcript(
            f"{number + 1}0000000-0000-4000-8000-000000000000",
            seed=number,
            start=START + timedelta(days=40 * number),
            cwd=f"/home/zoe/ferry{number}",
        ).user("four").assistant("4", model="claude-opus-4-1-20250805").write(root)


def test_a_breakdown_has_the_same_numbers_as_single_reports(history: History, root: Path) -> None:
    write_two_sources_of_activity(root)
    history.sync()
    for filter_ in (Filter(), Filter(since=START + timedelta(days=30))):
        found = history.statistics.breakdown(
            filter_, period="month", by=("source", "workspace", "model", "tool"), zone=UTC
        )
        for by, report in found.reports.items():
            assert report == history.statistics.report(filter_, by=by, zone=UTC)
        assert found.hours == history.statistics.messages_by_hour(filter_, zone=UTC)
        assert history.statistics.reports(filter_, by=list(found.reports), zone=UTC) == found.reports


def test_the_parts_of_a_series_add_up_to_their_periods(history: History, root: Path) -> None:
    write_two_sources_of_activity(root)
    history.sync()
    found = history.statistics.breakdown(
        period="month", by=(), stacked_by=("source", "workspace", "model"), max_groups=2, zone=UTC
    )
    months = {row.key: row for row in found.reports["month"].rows}
    for name, series in found.series.items():
        assert len(series.groups) <= 2
        for month, row in months.items():
            parts = [part for (period, _), part in series.sums.items() if period == month]
            tokens = [part.tokens.total for part in parts if part.tokens is not None]
            assert sum(tokens) == (row.tokens.total if row.tokens is not None else 0)
            if name != "model":
                assert sum(part.messages or 0 for part in parts) == row.messages
                assert sum(part.sessions for part in parts) == row.sessions
    assert found.series["workspace"].groups[0] == "/home/zoe/quay"
    assert {group for _, group in found.series["workspace"].sums} >= {"/home/zoe/quay", None}
    assert found.series["source"].groups == ("claude-code",)
    assert "claude-opus-4-1-20250805" in found.series["model"].groups


def test_a_breakdown_names_the_most_edited_files(history: History, root: Path) -> None:
    session = Transcript(ONE, start=START, cwd="/home/zoe/quay").user("edit")
    for _ in range(2):
        session.run(tool_calls.edit("/home/zoe/quay/a.py", "x = 1\n", "x = 2\n", original="x = 1\n"))
    session.run(tool_calls.edit("/home/zoe/quay/b.py", "x = 1\n", "x = 2\n", original="x = 1\n"))
    session.write(root)
    history.sync()
    files = history.statistics.breakdown(period="day", by=(), max_files=1).files
    assert [(file.path, file.edits) for file in files] == [("/home/zoe/quay/a.py", 2)]
