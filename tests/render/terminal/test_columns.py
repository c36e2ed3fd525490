"""Text measured in columns."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backscroll.render.terminal.width import cell_width, pad, truncate, wrap

texts = st.text(st.sampled_from("ab é日本語。e\u0301🚢  \u200d"), max_size=80)


def test_a_wide_character_takes_two_columns_and_a_combining_one_none() -> None:
    assert [cell_width(text) for text in ("abc", "日本", "e\u0301", "🚢", "")] == [3, 4, 1, 2, 0]


@given(texts, st.integers(1, 40))
def test_what_is_cut_fits_and_what_is_padded_fills(text: str, width: int) -> None:
    assert cell_width(truncate(text, width)) <= width
    assert cell_width(pad(text, width)) == width
    assert cell_width(pad(text, width, is_right=True)) == width


@given(texts, st.integers(2, 40))
@example(" 。", 2)
def test_wrapping_loses_nothing_but_spaces_and_every_line_fits(text: str, width: int) -> None:
    lines = list(wrap(text, width))
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cell_width(line) <= width for line in lines)


def test_a_line_is_broken_between_words() -> None:
    assert list(wrap("the ferry leaves at noon", 10)) == ["the ferry", "leaves at", "noon"]


def test_a_line_that_is_indented_stays_so() -> None:
    assert list(wrap("  - one two three", 10)) == ["  - one", "  two", "  three"]


def test_a_word_longer_than_the_line_is_broken_where_it_must_be() -> None:
    assert list(wrap("abcdefghij", 4)) == ["abcd", "efgh", "ij"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("字形になることがある。", ["字形になる", "ことがあ", "る。"]),
        ("Georgia だと日本語", ["Georgia だ", "と日本語"]),
    ],
)
def test_japanese_is_broken_anywhere_but_before_what_closes(text: str, lines: list[str]) -> None:
    assert list(wrap(text, 10)) == lines
