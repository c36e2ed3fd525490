"""Statistics equal an independent count of the raw records."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import example, given, settings

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.model.statistics import By, Sums
from backscroll.testing import cursor
from tests.builders.claude_code.generations import GENERATIONS
from tests.stats.histories import HISTORIES, SessionPlan, write_history
from tests.stats.raw_count import RawCount


@contextmanager
def synced_history(plans: list[SessionPlan]) -> Iterator[tuple[History, RawCount]]:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "claude"
        write_history(root, plans)
        with History(roots=[NamedRoot("claude-code", root)], home=Path(folder) / "home") as history:
            history.sync()
            yield history, RawCount(root)


EVERYTHING: list[SessionPlan] = [
    ("2.1.288", [("think", 2), ("delegate", 2), ("fork agent", 0), ("fail", 0), ("wait", 3)], "fork again"),
    ("1.0.40", [("delegate", 1), ("run", 1), ("ask", 0), ("answer", 0)], "resume"),
    ("2.0.40", [("delegate", 1), ("think", 1)], "plain fork"),
]


LATE_SUBAGENT: list[SessionPlan] = [("2.1.288", [("wait", 2), ("fork agent", 0)], "")]


def total_of(row: Sums) -> int:
    return row.tokens.total if row.tokens is not None else 0


@settings(max_examples=15)
@given(plans=HISTORIES)
@example(plans=EVERYTHING)
def test_totals_equal_those_of_the_raw_records(plans: list[SessionPlan]) -> None:
    with synced_history(plans) as (history, raw):
        total = history.statistics.report().total
        assert total.tokens is not None
        assert {
            "input_tokens": total.tokens.input,
            "output_tokens": total.tokens.output,
            "cache_creation_input_tokens": total.tokens.cache_write + total.tokens.cache_write_1h,
            "cache_read_input_tokens": total.tokens.cache_read,
        } == raw.tokens()
        assert total.responses == len(raw.responses)
        assert total.prompts == raw.prompts
        assert (total.tool_calls, total.tool_failures) == (len(raw.calls), len(raw.failed))


@settings(max_examples=8)
@given(plans=HISTORIES)
@example(plans=EVERYTHING)
def test_rows_equal_those_of_the_raw_records_and_add_up(plans: list[SessionPlan]) -> None:
    with synced_history(plans) as (history, raw):
        days = {
            row.key: total_of(row) for row in history.statistics.report(by="day", zone=UTC).rows if row.tokens
        }
        assert days == dict(raw.by(raw.days()))
        models = {row.key: total_of(row) for row in history.statistics.report(by="model").rows if row.tokens}
        assert models == dict(raw.by(raw.models))
        tools = {row.key: row.tool_calls for row in history.statistics.report(by="tool").rows}
        assert tools == dict(Counter(raw.calls.values()))
        whole = history.statistics.report().total
        for by in get_args(By):
            rows = history.statistics.report(by=by, zone=UTC).rows
            if by != "tool":
                assert sum(map(total_of, rows)) == total_of(whole)
            if by not in ("tool", "model"):
                assert sum(row.messages or 0 for row in rows) == whole.messages
                assert sum(row.active_seconds or 0 for row in rows) == pytest.approx(whole.active_seconds)
            if by != "model":
                assert sum(row.tool_calls or 0 for row in rows) == whole.tool_calls
                assert sum(row.lines_added or 0 for row in rows) == whole.lines_added


@settings(max_examples=8)
@given(plans=HISTORIES)
@example(plans=EVERYTHING)
@example(plans=LATE_SUBAGENT)
def test_every_usage_record_is_explained_and_the_counted_ones_add_up(plans: list[SessionPlan]) -> None:
    with synced_history(plans) as (history, raw):
        record_count = 0
        for summary in history.all_sessions():
            explained = history.statistics.explain_session(summary.ref)
            counted = [record for record in explained.records if record.fate == "counted"]
            assert explained.tokens.total == (summary.total_tokens or 0)
            assert sum(record.tokens.total for record in counted) == (summary.total_tokens or 0)
            assert sum(charge.tokens.total for charge in explained.charges) == (summary.total_tokens or 0)
            record_count += len(explained.records)
        assert record_count == raw.lines_with_usage
        whole = history.statistics.report().total
        days = [row.key for row in history.statistics.report(by="day", zone=UTC).rows if row.key]
        by_day = [history.statistics.explain_day(date.fromisoformat(day), zone=UTC) for day in days]
        assert sum(day.tokens.total for day in by_day) == total_of(whole)
        assert sum(day.usd or 0 for day in by_day) == pytest.approx(whole.cost_usd or 0)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_totals_equal_the_sums_over_the_session_list(generation: str, tmp_path: Path) -> None:
    GENERATIONS[generation](tmp_path / "claude", 0)
    roots = [NamedRoot("claude-code", tmp_path / "claude")]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        listed = history.all_sessions()
        total = history.statistics.report().total
    assert total.sessions == len(listed)
    assert total_of(total) == sum(summary.total_tokens or 0 for summary in listed)
    assert total.prompts == sum(summary.interaction_count for summary in listed)
    assert (total.lines_added or 0) + (total.lines_removed or 0) == sum(
        summary.total_changes for summary in listed
    )


def test_several_sources_are_added_up_and_can_be_separated(tmp_path: Path) -> None:
    write_history(tmp_path / "claude", EVERYTHING)
    ide = cursor.Home(tmp_path / "cursor")
    tokens = {"inputTokens": 1200, "outputTokens": 340}
    ide.composer([cursor.user("totals?"), cursor.assistant("once", tokenCount=tokens)], workspace=cursor.SHOP)
    ide.composer([cursor.user("and now?"), cursor.assistant("twice")], workspace=cursor.SHOP)
    ide.write()
    roots = [NamedRoot("claude-code", tmp_path / "claude"), NamedRoot("cursor", tmp_path / "cursor")]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        report = history.statistics.report(by="source")
        only_cursor = history.statistics.report(Filter(source="cursor"))
    rows = {row.key: row for row in report.rows}
    assert set(rows) == {"claude-code", "cursor"}
    assert total_of(rows["claude-code"]) == sum(RawCount(tmp_path / "claude").tokens().values())
    assert total_of(rows["cursor"]) == 1540 == total_of(only_cursor.total)
    assert rows["cursor"].sessions == 2
    assert only_cursor.uncounted_sessions == 1
    assert sum(map(total_of, report.rows)) == total_of(report.total)


def test_the_same_path_on_two_machines_is_two_workspaces(tmp_path: Path) -> None:
    ide = cursor.Home(tmp_path / "cursor")
    ide.composer([cursor.user("here?"), cursor.assistant("yes")], workspace=cursor.local_folder("/srv/app"))
    ide.composer(
        [cursor.user("there?"), cursor.assistant("no")], workspace=cursor.ssh_folder("box", "/srv/app")
    )
    ide.write()
    with History(roots=[NamedRoot("cursor", tmp_path / "cursor")], home=tmp_path / "home") as history:
        history.sync()
        rows = history.statistics.report(by="workspace").rows
    assert sorted(row.key or "" for row in rows) == ["/srv/app", "ssh-remote+box:/srv/app"]
