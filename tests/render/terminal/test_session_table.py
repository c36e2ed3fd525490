"""Tables and lists of sessions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from backscroll.model.session import PaginatedResult, Pagination, SessionSummary
from backscroll.render.session_table import (
    COLUMNS,
    PIPE_COLUMNS,
    page_footer,
    tab_separated_lines,
    table_lines,
)
from backscroll.render.terminal_text import Style, cell_width
from tests.render.sessions import AT, SUMMARY, texts

PLAIN = Style(is_colored=False)


def page(*data: SessionSummary, offset: int = 0, total: int | None = None) -> PaginatedResult[SessionSummary]:
    total = len(data) if total is None else total
    return PaginatedResult(data, Pagination(total, 20, offset, offset + len(data) < total))


def row(summary: SessionSummary, width: int = 100, **more: object) -> str:
    return list(table_lines(page(summary), width=width, style=PLAIN, now=AT, **more))[1]  # type: ignore[arg-type]


def pipe_line(summary: SessionSummary, **more: object) -> str:
    [line] = tab_separated_lines(page(summary), style=PLAIN, **more)  # type: ignore[arg-type]
    return line


def test_a_live_session_is_marked() -> None:
    live = {(SUMMARY.platform, SUMMARY.id)}
    assert pipe_line(SUMMARY, live=live).endswith("\tlive")
    assert "  live  " in row(SUMMARY, live=live)


def test_gone_and_incomplete_sessions_are_marked() -> None:
    lost = replace(SUMMARY, is_gone=True, completeness="partial")
    assert pipe_line(lost).endswith("\tgone partial")
    assert "gone, partial" in row(lost)


def test_a_star_and_tags_are_shown() -> None:
    annotated = replace(SUMMARY, is_starred=True, tags=("later", "tides"))
    assert "★ Why is the timetable" in row(annotated)
    assert "#later #tides" in row(annotated)
    assert pipe_line(annotated).endswith("Why is the timetable off by one hour?\tlater tides\tstarred")


def test_the_first_prompt_is_shown_if_it_fits_and_differs_from_the_title() -> None:
    named = replace(SUMMARY, title="Timetable", first_message_preview="Why is it off by one hour?")
    assert "Timetable  Why is it off by one hour?" in row(named)
    same = replace(SUMMARY, title="Why is it…", first_message_preview="Why is it off by one hour?")
    assert "off by one hour" not in row(same)


def test_columns_are_dropped_one_by_one_on_a_narrow_terminal() -> None:
    headings = [
        next(table_lines(page(SUMMARY), width=width, style=PLAIN)).split() for width in (100, 60, 50, 40)
    ]
    assert [len(heading) for heading in headings] == sorted(
        (len(heading) for heading in headings), reverse=True
    )
    assert headings[0] == ["#", "when", "title", "workspace", "msgs", "tokens", "source", "id"]
    assert headings[-1][-1] == "id"


def test_unknown_values_are_not_shown_as_numbers() -> None:
    unknown = replace(SUMMARY, total_tokens=None, updated_at=None, workspace_name=None)
    columns = ("updated", "workspace", "messages", "tokens")
    assert pipe_line(unknown, columns=columns).split("\t") == ["", "", "3", ""]
    assert "unknown" in row(unknown)


def test_the_footer_shows_the_range_of_the_page() -> None:
    assert page_footer(page(SUMMARY, offset=20, total=1234)) == "21 to 21 of 1,234"
    assert page_footer(page(SUMMARY)) is None


def test_chosen_columns_are_shown_in_the_given_order_at_any_width() -> None:
    columns = ("tokens", "branch", "title", "state", "created")
    for width in (20, 200):
        heading = next(table_lines(page(SUMMARY), width=width, style=PLAIN, columns=columns))
        assert heading.split() == list(columns)


def test_states_and_tags_with_their_own_column_are_not_repeated_in_the_title() -> None:
    tagged = replace(SUMMARY, is_gone=True, tags=("later",))
    assert row(tagged, columns=("title", "tags", "state")).count("later") == 1
    assert row(tagged, columns=("title", "tags", "state")).count("gone") == 1


@pytest.mark.parametrize("width", [30, 80, 200])
@given(text=texts, number=st.integers(0, 10**12))
def test_a_row_with_any_text_is_one_line_that_fits(text: str, number: int, width: int) -> None:
    odd = replace(
        SUMMARY,
        title=text,
        workspace_name=text,
        first_message_preview=text,
        tags=(text,),
        is_starred=True,
        total_tokens=number,
        message_count=number,
    )
    for line in table_lines(page(odd), width=width, style=PLAIN, live={(odd.platform, odd.id)}):
        assert cell_width(line) <= width
        assert not set(line) & set(map(chr, [*range(32), *range(127, 160)]))
    for columns in (PIPE_COLUMNS, tuple(COLUMNS)):
        line = pipe_line(odd, columns=columns)
        assert line.count("\t") == len(columns) - 1
        assert not set(line) & set(map(chr, [*range(9), *range(10, 32), *range(127, 160)]))
