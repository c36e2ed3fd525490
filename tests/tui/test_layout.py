"""Tests of wrapping, layout, entries and keys, without a screen."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from backscroll.model.search import SearchMatch
from backscroll.render.terminal_text import truncate, wrap_spans
from backscroll.tui.app import PANEL_KEYS
from backscroll.tui.blocks import Block
from backscroll.tui.session_list import match_entry
from backscroll.tui.session_list_panel import as_prefix_query
from backscroll.tui.transcript import Layout

BlockDescription = tuple[str, int, list[str]]  # kind, depth, lines
BLOCKS = st.lists(
    st.builds(
        lambda kind, depth, lines: (kind, depth, lines),
        st.sampled_from(["prompt", "answer", "call", "thinking", "subagent"]),
        st.integers(0, 2),
        st.lists(st.text(alphabet=st.characters(exclude_characters="\n")), max_size=4),
    ),
    max_size=12,
)


def make_layout(descriptions: list[BlockDescription], width: int) -> Layout:
    layout, depth = Layout(width), 0
    for position, (kind, wanted_depth, lines) in enumerate(descriptions):
        depth = min(wanted_depth, depth)
        body = tuple((line, "plain") for line in lines)
        layout.add_blocks([Block(kind, ("a", position), depth=depth, heading=kind, body=body)])  # type: ignore[arg-type]
        depth += kind == "subagent"
    return layout


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"])), st.integers(2, 60))
def test_wrapped_lines_fit_and_lose_only_spaces(line: str, width: int) -> None:
    spans = wrap_spans(line, width)
    assert all(cell_len(line[start:end]) <= width for start, end in spans)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(line)
    assert all(line[end:start] in ("", " ") for (_, end), (start, _) in pairwise(spans))


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"])), st.integers(1, 40))
def test_a_truncated_text_fits_into_its_width(text: str, width: int) -> None:
    assert cell_len(truncate(text, width)) <= width


@given(BLOCKS, st.integers(1, 100), st.lists(st.integers(0, 11), max_size=6))
def test_every_line_of_a_layout_has_a_row_after_any_folding(
    descriptions: list[BlockDescription], width: int, toggled: list[int]
) -> None:
    layout = make_layout(descriptions, width)
    for index in toggled:
        if index < len(layout.blocks):
            layout.toggle(index)
    assert layout.height == sum(len(layout.block_rows(index)) for index in range(len(layout.blocks)))
    for y in range(layout.height):
        row = layout.row_at(y)
        assert row is not None
        assert row.block_index == layout.block_at(y)
        anchor = layout.anchor_at(y)
        assert anchor is not None
        assert layout.line_of(anchor) == y
    assert layout.with_width(width).height == layout.height


def test_reveal_expands_the_folded_subagents_around_a_block() -> None:
    layout = make_layout(
        [
            ("prompt", 0, ["go"]),
            ("subagent", 0, []),
            ("subagent", 1, []),
            ("answer", 2, ["deep"]),
            ("answer", 0, ["x"]),
        ],
        80,
    )
    folded_height = layout.height
    assert layout.block_rows(3) == []
    layout.reveal(3)
    assert [row.text for row in layout.block_rows(3) if row.part == "body"] == ["deep"]
    assert layout.height > folded_height


def test_a_hidden_message_resolves_to_the_visible_one_before_it() -> None:
    layout = Layout(80)
    layout.add_blocks(Block("answer", ("a", position)) for position in (0, 2, 7))
    assert [layout.find_block(("a", position)) for position in (0, 1, 2, 5, 9)] == [0, 0, 1, 1, 2]
    assert layout.find_block(("b", 1)) is None


def test_an_unfinished_last_word_is_searched_as_a_prefix() -> None:
    assert as_prefix_query("flaky te") == "flaky te*"
    assert as_prefix_query("flaky test ") == "flaky test "
    assert as_prefix_query('"flaky te') == '"flaky te'
    assert as_prefix_query("role:us") == "role:us"
    assert as_prefix_query("a") == "a"


@pytest.mark.parametrize("query", ["-flaky", "test NOT", "test OR", "test AND", "test NOT flak", "NOT  flak"])
def test_an_operator_or_an_excluded_word_is_no_prefix(query: str) -> None:
    assert as_prefix_query(query) == query


@given(st.text(min_size=1), st.data())
def test_highlights_of_a_match_are_inside_its_excerpt(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    match = SearchMatch(
        session_ref="claude-code:1", session_id="1", session_index=1, source="claude-code", title=None,
        workspace_name=None, message_id="m", message_index=0, role="user", timestamp=None, match=text,
        highlights=((start, end),), context=(), line_number=1, score=1.0, match_count=1,
    )  # fmt: skip
    entry = match_entry(match, datetime.now(UTC))
    assert all(0 <= first <= last <= len(entry.excerpt) for first, last in entry.highlights)


def test_every_key_in_the_footer_is_bound_keys() -> None:
    from backscroll.tui.app import Backscroll
    from backscroll.tui.session_list import SessionList
    from backscroll.tui.transcript import Transcript

    global_keys = bound_keys(Backscroll)
    assert {key for _, _, key in PANEL_KEYS["sessions"]} <= global_keys | bound_keys(SessionList)
    assert {key for _, _, key in PANEL_KEYS["transcript"]} <= global_keys | bound_keys(Transcript)


def bound_keys(widget: type) -> set[str]:
    return {key for binding in widget.__dict__["BINDINGS"] for key in binding.key.split(",")}
