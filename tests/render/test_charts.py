"""Bars, sparklines, costs, durations and percentages."""

from hypothesis import given
from hypothesis import strategies as st

from backscroll.model.statistics import Sums, Tokens
from backscroll.render.humanize import format_cost, format_duration, format_percent, format_usd
from backscroll.render.statistics import bar, sparkline


@given(st.lists(st.integers(0, 10**9), min_size=1), st.integers(1, 80))
def test_the_length_of_a_bar_follows_its_value(values: list[int], width: int) -> None:
    bars = [bar(value, max(values), width) for value in values]
    assert all(len(one) <= width for one in bars)
    assert all(bool(one) == (value > 0) for one, value in zip(bars, values, strict=True))
    assert not any(values) or max(map(len, bars)) == width


@given(st.lists(st.integers(0, 10**9)))
def test_a_sparkline_has_one_block_per_value_and_dots_for_zero(values: list[int]) -> None:
    line = sparkline(values)
    assert len(line) == len(values)
    assert [mark == "·" for mark in line] == [value == 0 for value in values]
    assert not any(values) or "█" in line


def test_charts_are_drawn_in_eighths() -> None:
    assert [bar(value, 8, 1) for value in range(9)] == ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"]
    assert sparkline([0, 1, 2, 4, 8]) == "·▂▃▅█"


def test_small_amounts_are_not_shown_as_zero_and_large_shares_not_as_all() -> None:
    assert [format_usd(usd) for usd in (0, 0.001, 0.05, 1234.5)] == ["$0.00", "<$0.01", "$0.05", "$1,234.50"]
    assert [format_percent(share) for share in (0, 0.0001, 0.042, 0.5, 0.999, 1)] == [
        "0 %", "<0.1 %", "4.2 %", "50 %", ">99 %", "100 %",
    ]  # fmt: skip
    assert [format_duration(seconds) for seconds in (0, 29, 90, 3600, 5400, 4e6)] == [
        "0 s", "29 s", "2 min", "1 h", "1 h 30 min", "1,111 h 7 min",
    ]  # fmt: skip


def test_a_cost_is_marked_if_prices_are_missing() -> None:
    tokens = Tokens(input=5)
    assert format_cost(Sums(key=None)) == ""
    assert format_cost(Sums(key=None, tokens=tokens, cost_usd=1.0)) == "$1.00"
    assert format_cost(Sums(key=None, tokens=tokens, cost_usd=1.0, unpriced_tokens=2)) == "≥$1.00"
    assert format_cost(Sums(key=None, tokens=tokens, unpriced_tokens=5)) == "?"
