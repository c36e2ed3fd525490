"""Periods, summaries, and files with any content."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.errors import UsageError
from backscroll.journal.entry import escape_html
from backscroll.journal.files import DailyFiles, block_text, parse_blocks
from backscroll.journal.journal import Journal
from backscroll.journal.summaries import parse_period
from backscroll.model.journal import PeriodKind
from tests.journal.conftest import REASON, Workplace

NOW = datetime(2026, 7, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "text", "first", "end", "name"),
    [
        ("day", "2026-07-13", date(2026, 7, 13), date(2026, 7, 14), "2026-07-13"),
        ("day", "yesterday", date(2026, 7, 14), date(2026, 7, 15), "2026-07-14"),
        ("week", "2026-W29", date(2026, 7, 13), date(2026, 7, 20), "2026-W29"),
        ("week", "2027-01-01", date(2026, 12, 28), date(2027, 1, 4), "2026-W53"),
        ("month", "2026-12", date(2026, 12, 1), date(2027, 1, 1), "2026-12"),
        ("month", "today", date(2026, 7, 1), date(2026, 8, 1), "2026-07"),
        ("quarter", "2026-Q4", date(2026, 10, 1), date(2027, 1, 1), "2026-Q4"),
        ("quarter", "2026q1", date(2026, 1, 1), date(2026, 4, 1), "2026-Q1"),
        ("quarter", "2026-08-31", date(2026, 7, 1), date(2026, 10, 1), "2026-Q3"),
        ("year", "2026", date(2026, 1, 1), date(2027, 1, 1), "2026"),
    ],
)
def test_a_period_is_named_or_contains_a_day(
    kind: PeriodKind, text: str, first: date, end: date, name: str
) -> None:
    period = parse_period(kind, text, NOW, UTC)
    assert (period.first, period.end, period.name) == (first, end, name)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("day", "2026-07"),
        ("week", "2026-W54"),
        ("month", "2026-13"),
        ("quarter", "2026-Q5"),
        ("year", "soon"),
    ],
)
def test_another_text_is_a_usage_error(kind: PeriodKind, text: str) -> None:
    with pytest.raises(UsageError, match=f"is not a {kind}"):
        parse_period(kind, text, NOW, UTC)


def test_a_summary_contains_commits_decisions_and_reflections(journal: Journal, workplace: Workplace) -> None:
    result = journal.backfill(workplace.repository, period=("week", "2026-W10"))
    assert result.written == (workplace.second,)
    assert result.summary_path is not None
    assert result.summary_path.relative_to(journal.folder(workplace.repository)).as_posix() == (
        "summaries/weekly/2026-W10-summary.md"
    )
    text = result.summary_path.read_text()
    assert "1 commit on 1 day." in text
    assert (
        f"- 2026-03-02 Add prices (`{workplace.second[:9]}`)\n  - “Prices are now sums of 2 integers.”"
        in text
    )
    assert f"- **2026-03-02 Add prices**\n  - “{REASON}” (assistant, 09:00)\n    - “Yes, cents." in text
    journal.add_note("reflection", "A good week.", workplace.repository)
    today = journal.backfill(workplace.repository, period=("day", "today"))
    assert today.summary_path is not None and "A good week." in today.summary_path.read_text()


def test_a_summary_follows_the_entries_until_the_user_edits_it(
    journal: Journal, workplace: Workplace
) -> None:
    path = journal.backfill(workplace.repository, period=("month", "2026-03")).summary_path
    assert path is not None
    daily = journal.folder(workplace.repository) / "daily" / "2026-03-02-journal.md"
    daily.write_text(daily.read_text().replace("### Open", "### Open\n\n- Ask Kim about VAT"))
    path.write_text("# Mine\n\n" + path.read_text())
    assert not journal.backfill(workplace.repository, period=("month", "2026-03")).is_summary_edited
    assert "Ask Kim about VAT" in path.read_text() and path.read_text().startswith("# Mine")
    path.write_text(path.read_text().replace("Ask Kim", "Asked Kim"))
    edited = path.read_text()
    assert journal.backfill(workplace.repository, period=("month", "2026-03")).is_summary_edited
    assert path.read_text() == edited


@pytest.mark.parametrize("kind", ["day", "week", "month", "quarter", "year"])
def test_a_period_without_entries_has_no_summary(
    journal: Journal, workplace: Workplace, kind: PeriodKind
) -> None:
    result = journal.backfill(workplace.repository, period=(kind, "2020-05-05"))
    assert (result.written, result.summary_path) == ((), None)


@given(text=st.text())
def test_any_text_is_parsed_into_blocks_and_kept(text: str) -> None:
    for block in parse_blocks(text):
        assert text[block.start : block.end].startswith("<!-- backscroll:")


@given(
    before=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")),
    body=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")),
)
def test_adding_a_block_keeps_any_text_before_it(
    tmp_path_factory: pytest.TempPathFactory, before: str, body: str
) -> None:
    files = DailyFiles(tmp_path_factory.mktemp("journal"), UTC)
    path = files.path(date(2026, 7, 15))
    path.parent.mkdir()
    path.write_bytes(before.encode())
    files.add("context", {}, body.replace("<!-- backscroll:", ""), NOW)
    written = path.read_bytes().decode()
    assert written.startswith(before.rstrip("\n"))
    assert not parse_blocks(written)[-1].is_edited


def test_a_changed_block_is_edited() -> None:
    (block,) = parse_blocks(block_text("entry", {"sha": "a1"}, "Text.\n"))
    assert (block.kind, block.fields["sha"], block.is_edited) == ("entry", "a1", False)
    (changed,) = parse_blocks(block_text("entry", {"sha": "a1"}, "Text.\n").replace("Text", "Mine"))
    assert changed.is_edited


@given(text=st.text())
def test_a_quote_cannot_start_a_marker(text: str) -> None:
    assert "<!--" not in escape_html(text + "<!-- backscroll:end -->")


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    files = DailyFiles(tmp_path / "journal", UTC)
    path = files.path(date(2026, 7, 15))
    path.parent.mkdir(parents=True)
    target = tmp_path / "target.md"
    target.write_text("# Mine\n")
    path.symlink_to(target)
    files.add("context", {}, "Text.", NOW)
    assert path.is_symlink() and "Text." in target.read_text()
