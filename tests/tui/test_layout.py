"""Where lines stand, without a screen."""

from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from backscroll.model import SearchMatch
from backscroll.render.terminal.width import truncate, wrap_spans
from backscroll.tui.footer import LINES
from backscroll.tui.session_list.entry import of_match
from backscroll.tui.session_list.panel import as_typed
from backscroll.tui.transcript.blocks import Block
from backscroll.tui.transcript.layout import Layout

BLOCKS = st.lists(
    st.builds(
        lambda kind, depth, lines: (kind, depth, lines),
        st.sampled_from(["prompt", "answer", "call", "thinking", "agent"]),
        st.integers(0, 2),
        st.lists(st.text(alphabet=st.characters(exclude_characters="\n")), max_size=4),
    ),
    max_size=12,
)


def laid_out(made: list[tuple[str, int, list[str]]], width: int) -> Layout:
    layout, depth = Layout(width), 0
    for number, (kind, wanted, lines) in enumerate(made):
        depth = min(wanted, depth)
        body = tuple((line, "plain") for line in lines)
        layout.add([Block(kind, ("a", number), depth=depth, head=kind, body=body)])  # type: ignore[arg-type]
        depth += kind == "agent"
    return layout


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"])), st.integers(2, 60))
def test_a_line_is_cut_into_pieces_that_fit_and_lose_only_spaces(line: str, width: int) -> None:
    pieces = wrap_spans(line, width)
    assert all(cell_len(line[start:end]) <= width for start, end in pieces)
    assert pieces[0][0] == 0
    assert pieces[-1][1] == len(line)
    assert all(line[end:start] in ("", " ") for (_, end), (start, _) in pairwise(pieces))


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"])), st.integers(1, 40))
def test_a_fitted_text_is_never_wider_than_its_room(text: str, width: int) -> None:
    assert cell_len(truncate(text, width)) <= width


@given(BLOCKS, st.integers(1, 100), st.lists(st.integers(0, 11), max_size=6))
def test_every_line_of_a_layout_has_a_row_whatever_is_folded(
    made: list[tuple[str, int, list[str]]], width: int, toggled: list[int]
) -> None:
    layout = laid_out(made, width)
    for number in toggled:
        if number < len(layout.blocks):
            layout.toggle(number)
    assert layout.height == sum(len(layout.rows_of(number)) for number in range(len(layout.blocks)))
    for y in range(layout.height):
        row = layout.row(y)
        assert row is not None
        assert row.block == layout.block_at(y)
        anchor = layout.anchor(y)
        assert anchor is not None
        assert layout.line_of(anchor) == y
    assert layout.at(width).height == layout.height


def test_a_folded_subagent_hides_all_it_said_and_a_place_in_it_is_revealed() -> None:
    layout = laid_out(
        [
            ("prompt", 0, ["go"]),
            ("agent", 0, []),
            ("agent", 1, []),
            ("answer", 2, ["deep"]),
            ("answer", 0, ["x"]),
        ],
        80,
    )
    hidden = layout.height
    assert layout.rows_of(3) == []
    layout.reveal(3)
    assert [row.text for row in layout.rows_of(3) if row.part == "body"] == ["deep"]
    assert layout.height > hidden


def test_a_message_that_is_not_shown_is_found_at_the_one_before_it() -> None:
    layout = Layout(80)
    layout.add(Block("answer", ("a", position)) for position in (0, 2, 7))
    assert [layout.find(("a", position)) for position in (0, 1, 2, 5, 9)] == [0, 0, 1, 1, 2]
    assert layout.find(("b", 1)) is None


def test_a_word_that_may_not_be_finished_is_searched_as_a_beginning() -> None:
    assert as_typed("flaky te") == "flaky te*"
    assert as_typed("flaky test ") == "flaky test "
    assert as_typed('"flaky te') == '"flaky te'
    assert as_typed("role:us") == "role:us"
    assert as_typed("a") == "a"


@given(st.text(min_size=1), st.data())
def test_what_was_found_is_marked_where_it_stands(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    match = SearchMatch(
        session_ref="claude-code:1", session_id="1", session_index=1, source="claude-code", title=None,
        workspace_name=None, message_id="m", message_index=0, role="user", timestamp=None, match=text,
        highlights=((start, end),), context=(), line_number=1, score=1.0, match_count=1,
    )  # fmt: skip
    entry = of_match(match, datetime.now(UTC))
    assert all(0 <= first <= last <= len(entry.found) for first, last in entry.marks)


def test_every_key_that_is_shown_is_bound() -> None:
    from backscroll.tui.app import Backscroll
    from backscroll.tui.session_list.widget import SessionList
    from backscroll.tui.transcript.widget import Transcript

    everywhere = bound(Backscroll)
    assert {key for _, _, key in LINES["sessions"]} <= everywhere | bound(SessionList)
    assert {key for _, _, key in LINES["transcript"]} <= everywhere | bound(Transcript)


def bound(widget: type) -> set[str]:
    return {key for binding in widget.__dict__["BINDINGS"] for key in binding.key.split(",")}
