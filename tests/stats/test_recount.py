"""Figures agree with a straightforward count over the raw records."""

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
from backscroll.history import History
from backscroll.model import Filter
from backscroll.model.statistics import By, Sums
from backscroll.testing import cursor
from backscroll.testing.claude_code import GENERATIONS
from tests.stats.histories import HISTORIES, Told, write
from tests.stats.recount import Recount


@contextmanager
def synced(told: list[Told]) -> Iterator[tuple[History, Recount]]:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "claude"
        write(root, told)
        with History(roots=[NamedRoot("claude-code", root)], home=Path(folder) / "home") as history:
            history.sync()
            yield history, Recount(root)


EVERYTHING: list[Told] = [
    ("2.1.288", [("think", 2), ("delegate", 2), ("fork agent", 0), ("fail", 0), ("wait", 3)], "fork again"),
    ("1.0.40", [("delegate", 1), ("run", 1), ("ask", 0), ("answer", 0)], "resume"),
    ("2.0.40", [("delegate", 1), ("think", 1)], "plain fork"),
]


A_LATE_SUBAGENT: list[Told] = [("2.1.288", [("wait", 2), ("fork agent", 0)], "")]


def total_of(row: Sums) -> int:
    return row.tokens.total if row.tokens is not None else 0


@settings(max_examples=15)
@given(told=HISTORIES)
@example(told=EVERYTHING)
def test_totals_are_those_of_the_raw_records(told: list[Told]) -> None:
    with synced(told) as (history, raw):
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
@given(told=HISTORIES)
@example(told=EVERYTHING)
def test_rows_are_those_of_the_raw_records_and_add_up(told: list[Told]) -> None:
    with synced(told) as (history, raw):
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
@given(told=HISTORIES)
@example(told=EVERYTHING)
@example(told=A_LATE_SUBAGENT)
def test_every_usage_record_is_explained_and_those_that_count_add_up(told: list[Told]) -> None:
    with synced(told) as (history, raw):
        told_records = 0
        for summary in history.all_sessions():
            explained = history.statistics.explain_session(summary.ref)
            counted = [one for one in explained.records if one.fate == "counted"]
            assert explained.tokens.total == (summary.total_tokens or 0)
            assert sum(one.tokens.total for one in counted) == (summary.total_tokens or 0)
            assert sum(one.tokens.total for one in explained.charges) == (summary.total_tokens or 0)
            told_records += len(explained.records)
        assert told_records == raw.lines_with_usage
        whole = history.statistics.report().total
        days = [row.key for row in history.statistics.report(by="day", zone=UTC).rows if row.key]
        by_day = [history.statistics.explain_day(date.fromisoformat(day), zone=UTC) for day in days]
        assert sum(one.tokens.total for one in by_day) == total_of(whole)
        assert sum(one.usd or 0 for one in by_day) == pytest.approx(whole.cost_usd or 0)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_sum_over_sessions_is_what_the_list_says(generation: str, tmp_path: Path) -> None:
    GENERATIONS[generation](tmp_path / "claude", 0)
    roots = [NamedRoot("claude-code", tmp_path / "claude")]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        listed = history.all_sessions()
        total = history.statistics.report().total
    assert total.sessions == len(listed)
    assert total_of(total) == sum(one.total_tokens or 0 for one in listed)
    assert total.prompts == sum(one.interaction_count for one in listed)
    assert (total.lines_added or 0) + (total.lines_removed or 0) == sum(one.total_changes for one in listed)


def test_several_sources_are_added_up_and_told_apart(tmp_path: Path) -> None:
    write(tmp_path / "claude", EVERYTHING)
    ide = cursor.Home(tmp_path / "cursor")
    spent = {"inputTokens": 1200, "outputTokens": 340}
    ide.composer([cursor.user("totals?"), cursor.assistant("once", tokenCount=spent)], workspace=cursor.SHOP)
    ide.composer([cursor.user("and now?"), cursor.assistant("twice")], workspace=cursor.SHOP)
    ide.write()
    roots = [NamedRoot("claude-code", tmp_path / "claude"), NamedRoot("cursor", tmp_path / "cursor")]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        report = history.statistics.report(by="source")
        only = history.statistics.report(Filter(source="cursor"))
    rows = {row.key: row for row in report.rows}
    assert set(rows) == {"claude-code", "cursor"}
    assert total_of(rows["claude-code"]) == sum(Recount(tmp_path / "claude").tokens().values())
    assert total_of(rows["cursor"]) == 1540 == total_of(only.total)
    assert rows["cursor"].sessions == 2
    assert only.uncounted_sessions == 1
    assert sum(map(total_of, report.rows)) == total_of(report.total)


def test_the_same_path_on_two_machines_is_two_workspaces(tmp_path: Path) -> None:
    ide = cursor.Home(tmp_path / "cursor")
    ide.composer([cursor.user("here?"), cursor.assistant("yes")], workspace=cursor.local("/srv/app"))
    ide.composer([cursor.user("there?"), cursor.assistant("no")], workspace=cursor.ssh("box", "/srv/app"))
    ide.write()
    with History(roots=[NamedRoot("cursor", tmp_path / "cursor")], home=tmp_path / "home") as history:
        history.sync()
        rows = history.statistics.report(by="workspace").rows
    assert sorted(row.key or "" for row in rows) == ["/srv/app", "ssh-remote+box:/srv/app"]
