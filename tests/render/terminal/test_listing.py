"""Sessions in a list, with what is special about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from backscroll.model import PaginatedResult, Pagination, SessionSummary
from backscroll.render.terminal.session_table import plain_lines, table_lines
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import cell_width
from tests.render.sessions import AT, SUMMARY, texts

PLAIN = Style(is_coloured=False)


def page(*data: SessionSummary, offset: int = 0, total: int | None = None) -> PaginatedResult[SessionSummary]:
    total = len(data) if total is None else total
    return PaginatedResult(data, Pagination(total, 20, offset, offset + len(data) < total))


def row(summary: SessionSummary, width: int = 100, **more: object) -> str:
    return list(table_lines(page(summary), width=width, style=PLAIN, now=AT, **more))[1]  # type: ignore[arg-type]


def test_a_session_that_is_being_held_says_so() -> None:
    live = {(SUMMARY.platform, SUMMARY.id)}
    [line] = plain_lines(page(SUMMARY), live)
    assert line.endswith("  [live]")
    assert "  live  " in row(SUMMARY, live=live)


def test_what_is_not_whole_or_no_longer_there_says_so() -> None:
    lost = replace(SUMMARY, is_gone=True, completeness="partial")
    [line] = plain_lines(page(lost))
    assert line.endswith("  [gone, partial]")
    assert "gone, partial" in row(lost)


def test_a_star_and_tags_are_shown() -> None:
    noted = replace(SUMMARY, is_starred=True, tags=("later", "tides"))
    assert "★ Why is the timetable" in row(noted)
    assert "#later #tides" in row(noted)
    [line] = plain_lines(page(noted))
    assert line.endswith("★ Why is the timetable off by one hour?  #later #tides")


def test_how_it_began_is_shown_where_there_is_room_and_it_is_not_the_title() -> None:
    named = replace(SUMMARY, title="Timetable", first_message_preview="Why is it off by one hour?")
    assert "Timetable  Why is it off by one hour?" in row(named)
    same = replace(SUMMARY, title="Why is it…", first_message_preview="Why is it off by one hour?")
    assert "off by one hour" not in row(same)


def test_columns_are_left_out_one_by_one_where_there_is_no_room() -> None:
    heads = [
        next(table_lines(page(SUMMARY), width=width, style=PLAIN)).split() for width in (100, 60, 50, 40)
    ]
    assert [len(head) for head in heads] == sorted((len(head) for head in heads), reverse=True)
    assert heads[0] == ["#", "when", "title", "workspace", "msgs", "tokens", "source", "id"]
    assert heads[-1][-1] == "id"


def test_unknown_is_not_a_number() -> None:
    unknown = replace(SUMMARY, total_tokens=None, updated_at=None, workspace_name=None)
    [line] = plain_lines(page(unknown))
    assert line.split()[1:7] == ["-", "5e551011", "claude-code", "-", "3", "-"]
    assert "unknown" in row(unknown)


def test_a_page_says_which_part_of_the_list_it_is() -> None:
    assert list(plain_lines(page(SUMMARY, offset=20, total=1234)))[-1] == "21 to 21 of 1,234"
    assert len(list(plain_lines(page(SUMMARY)))) == 1


@pytest.mark.parametrize("width", [30, 80, 200])
@given(text=texts, number=st.integers(0, 10**12))
def test_whatever_a_history_holds_a_row_is_one_line_that_fits(text: str, number: int, width: int) -> None:
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
    [line] = plain_lines(page(odd))
    assert "\n" not in line
