"""Charts show their numbers, and contain no markup from names."""

import re
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from backscroll.web.charts import Bar, bar_chart, calendar_chart, hour_chart, nice_ceiling, share_bar

TODAY = date(2026, 11, 17)


def test_the_calendar_ends_today_and_links_days_with_messages() -> None:
    chart = calendar_chart({TODAY: 3, TODAY - timedelta(days=400): 9}, TODAY, lambda day: f"/d?x={day}&y=1")
    assert "Tuesday, 17 November 2026: 3 messages" in chart
    assert chart.count("<a ") == 1
    assert '<a href="/d?x=2026-11-17&amp;y=1" tabindex="-1">' in chart
    assert len(re.findall(r'class="level-\d"', chart)) == 52 * 7 + 2


def test_levels_follow_the_rank_of_a_day() -> None:
    counts = {TODAY - timedelta(days=days): count for days, count in enumerate([1, 2, 3, 1000])}
    chart = calendar_chart(counts, TODAY, lambda day: "/")
    assert [chart.count(f'class="level-{level}"') for level in (1, 2, 3, 4)] == [1, 1, 1, 1]


@given(st.lists(st.lists(st.integers(0, 10**9), min_size=24, max_size=24), min_size=7, max_size=7))
def test_every_hour_has_a_level(counts: list[list[int]]) -> None:
    levels = re.findall(r'class="level-(\d)"', hour_chart(counts))
    assert len(levels) == 7 * 24
    assert set(levels) <= set("01234")
    assert [level == "0" for level in levels] == [count == 0 for row in counts for count in row]


@given(st.lists(st.tuples(st.text(max_size=10), st.floats(0, 1e12), st.text(max_size=10)), max_size=60))
def test_bars_stay_in_the_chart_and_names_stay_text(bars: list[tuple[str, float, str]]) -> None:
    chart = str(bar_chart([Bar(*bar) for bar in bars], "<label>"))
    assert "<label>" not in chart
    for height in re.findall(r'class="bar" [^>]*height="([\d.]+)"', chart):
        assert float(height) <= 100
    assert chart.count("<title>") == len(bars)


@given(st.floats(1e-9, 1e15))
def test_the_axis_ends_just_above_the_highest_value(value: float) -> None:
    ceiling = nice_ceiling(value)
    assert value * (1 - 1e-6) <= ceiling <= value * 2.0001


def test_parts_of_a_bar_are_stacked_on_each_other() -> None:
    bar = Bar("Nov", 8, "Nov: 8", parts=((1, 2.0), (3, 6.0)))
    chart = str(bar_chart([bar], "Messages", format_value=str))
    found = re.findall(r'class="bar series-(\d)" [^>]*y="([\d.]+)"[^>]*height="([\d.]+)"', chart)
    assert found == [("1", "75.00", "25.00"), ("3", "0.00", "75.00")]
    assert '<span class="value high">8.0</span><span class="value half">4.0</span>' in chart


def test_a_share_is_visible_if_it_is_not_zero() -> None:
    assert 'width="0.0"' in share_bar(0, 10)
    assert 'width="0.8"' in share_bar(1, 10**9)
    assert 'width="100.0"' in share_bar(10, 10)
    assert 'width="0.0"' in share_bar(0, 0)


def test_a_narrow_chart_has_labels_of_the_first_and_last_bar() -> None:
    chart = str(bar_chart([Bar(name, 1, name) for name in ("Jul", "Aug", "Sep")], "Messages", is_narrow=True))
    assert "<span>Jul</span><span>Sep</span>" in chart
