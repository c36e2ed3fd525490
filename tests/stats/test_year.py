"""Year in review."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.stats.statistics import topics_of
from backscroll.testing.claude_code import Transcript, tool_calls


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    root = tmp_path / "claude"
    days = [(2025, 12, 31), (2026, 1, 1), (2026, 3, 4), (2026, 3, 5), (2026, 3, 6), (2026, 9, 1)]
    for index, (year, month, day) in enumerate(days):
        session = Transcript(
            f"{index}0000000-0000-4000-8000-000000000000",
            start=datetime(year, month, day, 9 + index, 1, tzinfo=UTC),
            cwd=f"/home/zoe/{'ferry' if index % 2 else 'tides'}",
            seed=index,
        )
        session.user("The ferry timetable loses an hour")
        session.run(tool_calls.edit("/home/zoe/ferry/clock.py", "one", "two\nthree", original="one\n"))
        for _ in range(index):
            session.user("And the harbour lights").assistant("fine")
        session.write(root)
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home") as history:
        history.sync()
        yield history


def test_a_year_includes_its_first_and_last_day(history: History) -> None:
    year = history.statistics.year_in_review(2026, zone=UTC)
    assert year.total.sessions == 5
    assert [row.key for row in year.months if row.messages] == ["2026-01", "2026-03", "2026-09"]
    assert len(year.months) == 12
    assert sum(row.messages or 0 for row in year.months) == year.total.messages
    assert sum(year.hours) == sum(year.weekdays) == year.total.messages
    assert [hour for hour, count in enumerate(year.hours) if count] == [10, 11, 12, 13, 14]
    assert year.active_days == 5
    assert year.streak is not None
    assert (year.streak.first, year.streak.days) == (date(2026, 3, 4), 3)
    assert year.busiest_day == (date(2026, 9, 1), 12)


def test_a_year_contains_its_projects_files_tools_and_topics(history: History) -> None:
    year = history.statistics.year_in_review(2026, zone=UTC)
    assert [row.key for row in year.projects] == ["/home/zoe/ferry", "/home/zoe/tides"]
    (file,) = year.files
    assert (file.path, file.edits, file.added, file.removed) == ("/home/zoe/ferry/clock.py", 5, 10, 5)
    assert [(tool.name, tool.count) for tool in year.tools] == [("Edit", 5)]
    assert [model.name for model in year.models] == ["claude-opus-5"]
    assert year.topics[0].name == "ferry timetable"
    assert year.longest_session is not None
    assert year.longest_session.ref.startswith("claude-code:50000000")


def test_a_year_without_messages_is_empty(history: History) -> None:
    year = history.statistics.year_in_review(2019, zone=UTC)
    assert (year.active_days, year.streak, year.busiest_day, year.longest_session) == (0, None, None, None)
    assert year.total.sessions == 0


def test_topics_are_significant_words_counted_once_per_text() -> None:
    texts = ["the tide gauge, tide gauge", "a tide gauge is late", "please fix the tide", "the harbour"]
    assert topics_of(texts, 10) == [("tide", 3), ("tide gauge", 2)]


def test_a_streak_ends_at_a_gap(history: History) -> None:
    year = history.statistics.year_in_review(2025, zone=UTC)
    assert year.streak is not None
    assert year.streak.last - year.streak.first == timedelta(0)
