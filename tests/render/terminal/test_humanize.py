"""Short forms of ages and counts."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.render.humanize import compact_number, format_age

NOW = datetime(2026, 11, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (1249, "1.2k"),
        (9949, "9.9k"),
        (9951, "10k"),
        (110_137, "110k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (1_200_000, "1.2M"),
        (3_400_000_000, "3.4G"),
    ],
)
def test_a_number_is_abbreviated(number: int, expected: str) -> None:
    assert compact_number(number) == expected


@given(st.integers(0, 10**14))
def test_a_number_never_takes_more_than_four_characters(number: int) -> None:
    assert len(compact_number(number)) <= 4


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=3), "3 min ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(days=6), "6 d ago"),
        (timedelta(days=13), "1 w ago"),
        (timedelta(days=400), "1 y ago"),
    ],
)
def test_an_age_is_shown_in_its_largest_unit(age: timedelta, expected: str) -> None:
    assert format_age(NOW - age, NOW) == expected


def test_the_age_of_an_unknown_time_is_unknown() -> None:
    assert format_age(None, NOW) == "unknown"
