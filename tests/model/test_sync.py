"""Estimate of the remaining time of a sync."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.model.sync import MAX_ESTIMATE_SECONDS, estimate_remaining_seconds


@pytest.mark.parametrize(
    ("elapsed", "done", "total", "remaining"),
    [
        (2.9, 50, 100, None),  # too early
        (60.0, 1, 100, None),  # too little is done
        (3.0, 2, 100, 147.0),
        (10.0, 50, 100, 10.0),
        (10.0, 100, 100, 0.0),
        (10.0, 0, 0, None),
        (1e9, 50, 100, None),  # a clock that jumped
    ],
)
def test_there_is_an_estimate_after_three_seconds_and_two_percent(
    elapsed: float, done: int, total: int, remaining: float | None
) -> None:
    assert estimate_remaining_seconds(elapsed, done, total) == remaining


@given(st.floats(0, 1e12), st.integers(0, 10**15), st.integers(0, 10**15))
def test_an_estimate_is_never_negative_and_never_more_than_a_day(
    elapsed: float, done: int, total: int
) -> None:
    seconds = estimate_remaining_seconds(elapsed, done, total)
    assert seconds is None or 0 <= seconds <= MAX_ESTIMATE_SECONDS
