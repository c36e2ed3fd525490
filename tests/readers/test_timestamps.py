"""Timestamps in every known format, and values that are not timestamps."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.readers import timestamps

AT = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
SECONDS = 1_790_000_000
LATEST = datetime(2100, 1, 1, tzinfo=UTC)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def assert_usable(at: datetime | None) -> None:
    if at is not None:
        assert at.utcoffset() == timedelta(0)
        assert timestamps.EARLIEST <= at < LATEST


@given(JSON)
def test_any_json_value_gives_a_time_within_range_or_none(value: object) -> None:
    assert_usable(timestamps.from_value(value))


@given(st.text())
def test_any_text_gives_a_time_within_range_or_none(text: str) -> None:
    assert_usable(timestamps.from_english(text))


@given(
    st.from_regex(
        r"\A([A-Z][a-z]+day, )?[A-Z][a-z]{2,8} \d{1,2}, \d{4}, \d{1,2}:\d{2}"
        r"( [AP]M)?( \(UTC([+-]\d{1,2}(:\d{2})?)?\))?\Z"
    )
)
def test_text_shaped_like_an_english_time_gives_a_time_within_range_or_none(text: str) -> None:
    assert_usable(timestamps.from_english(text))


@given(
    seconds=st.integers(1_600_000_000, 4_000_000_000),
    microseconds=st.integers(0, 999_999),
    offset=st.integers(-14 * 60, 14 * 60),
)
def test_every_iso_time_is_parsed(seconds: int, microseconds: int, offset: int) -> None:
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=microseconds)
    written = at.astimezone(timezone(timedelta(minutes=offset)))
    assert timestamps.from_text(written.isoformat()) == at


@given(st.integers(1_600_000_000_000, 4_000_000_000_000))
def test_milliseconds_are_exact(value: int) -> None:
    at = timestamps.from_number(value)
    assert at is not None
    assert (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) == value
    assert timestamps.from_text(str(value)) == at


@pytest.mark.parametrize(
    "value",
    [
        SECONDS,
        float(SECONDS),
        SECONDS * 1_000,
        SECONDS * 1_000_000,
        str(SECONDS),
        f" {SECONDS}000 ",
        " 2026-09-21T14:13:20Z\n",
        "2026-09-21T14:13:20Z",
        "2026-09-21T14:13:20.000Z",
        "2026-09-21T16:13:20+02:00",
        "2026-09-21 14:13:20",
        "Mon Sep 21 19:43:20 2026 +0530",
        "Mon Sep 21 07:13:20 2026 -0700",
    ],
)
def test_one_time_in_every_format(value: object) -> None:
    assert timestamps.from_value(value) == AT


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        1,
        -1,
        123_456.789,
        946_684_800_000,
        float("nan"),
        float("inf"),
        10**400,
        "",
        "soon",
        "nan",
        "12:30",
        {},
        [],
    ],
)
def test_a_value_that_is_not_a_time_gives_none(value: object) -> None:
    assert timestamps.from_value(value) is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("Friday, Jul 31, 2026, 11:12 PM (UTC+8)", datetime(2026, 7, 31, 15, 12, tzinfo=UTC)),
        ("Monday, Sep 21, 2026, 4:13 PM (UTC+2)", datetime(2026, 9, 21, 14, 13, tzinfo=UTC)),
        ("Monday, Sep 21, 2026, 12:00 AM (UTC)", datetime(2026, 9, 21, 0, 0, tzinfo=UTC)),
        ("Monday, Sep 21, 2026, 12:30 PM (UTC-3:30)", datetime(2026, 9, 21, 16, 0, tzinfo=UTC)),
        ("Monday, Sep 21, 2026, 12:30 PM (UTC-0:30)", datetime(2026, 9, 21, 13, 0, tzinfo=UTC)),
        ("Monday, Sep 21, 2026, 12:30 PM (UTC+5:45)", datetime(2026, 9, 21, 6, 45, tzinfo=UTC)),
        ("Monday, Sep 21, 2026, 12:30 PM (UTC−5)", datetime(2026, 9, 21, 17, 30, tzinfo=UTC)),
        ("Tuesday, September 1, 2026, 9:05 AM (GMT+1)", datetime(2026, 9, 1, 8, 5, tzinfo=UTC)),
        ("May 3, 2026, 23:59:58 (UTC+0)", datetime(2026, 5, 3, 23, 59, 58, tzinfo=UTC)),
    ],
)
def test_an_english_time_is_parsed(text: str, at: datetime) -> None:
    assert timestamps.from_english(text) == at
    assert timestamps.from_english(f"<timestamp>{text}</timestamp>") == at


@pytest.mark.parametrize(
    "text",
    ["", "Foo 31, 2026, 11:12 PM", "Feb 31, 2026, 11:12 PM", "Jul 31, 2026, 25:12", "Jul 31, 1999, 1:00"],
)
def test_invalid_english_times_give_none(text: str) -> None:
    assert timestamps.from_english(text) is None


def test_an_invalid_utc_offset_is_rejected() -> None:
    assert timestamps.from_english("Jul 31, 2026, 11:12 PM (UTC+99)") is None
    assert timestamps.from_english("Jul 31, 2026, 11:12 PM (UTC+14)") is not None
