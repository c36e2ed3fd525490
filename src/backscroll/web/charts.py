"""Calendars, heat maps and bars as SVG.

Charts have no inline styles, because the content policy forbids them. Classes set the colors. Every shape
has its number as a tooltip.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from markupsafe import Markup

from backscroll.model.text import pluralize

__all__ = ["Bar", "bar_chart", "calendar_chart", "hour_chart", "share_bar"]

_CELL, _STEP = 11, 14
_LEVELS = 4
_WEEKS = 53
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BAR_AREA = (720, 120)  # width and height


class Bar(NamedTuple):
    """A bar of a chart."""

    label: str
    value: float
    title: str
    url: str = ""


def calendar_chart(counts: Mapping[date, int], today: date, url: Callable[[date], str]) -> Markup:
    """Return the last 53 weeks as a grid of days, Monday on top. Each day is a link."""
    first = today - timedelta(days=today.weekday(), weeks=_WEEKS - 1)
    limits = _limits(count for day, count in counts.items() if first <= day <= today)
    parts: list[Markup] = []
    for week in range(_WEEKS):
        monday = first + timedelta(weeks=week)
        x = 30 + week * _STEP
        is_month_start = week == 0 or monday.month != (monday - timedelta(weeks=1)).month
        if is_month_start and not (week == 0 and (monday + timedelta(weeks=2)).month != monday.month):
            parts.append(Markup('<text class="axis" x="{}" y="9">{}</text>').format(x, f"{monday:%b}"))
        for weekday in range(7):
            day = monday + timedelta(days=weekday)
            if day > today:
                break
            count = counts.get(day, 0)
            title = f"{day:%A}, {day.day} {day:%B %Y}: {pluralize(count, 'message')}"
            parts.append(_cell(x, 16 + weekday * _STEP, count, limits, title, url(day) if count else ""))
    for weekday in (0, 2, 4):
        parts.append(
            Markup('<text class="axis" x="0" y="{}">{}</text>').format(
                25 + weekday * _STEP, _WEEKDAYS[weekday]
            )
        )
    width, height = 30 + _WEEKS * _STEP, 16 + 7 * _STEP
    return _svg("calendar", width, height, "Messages per day in the last year", parts)


def hour_chart(counts: Sequence[Sequence[int]]) -> Markup:
    """Return a grid of weekdays and hours."""
    limits = _limits(count for row in counts for count in row)
    parts: list[Markup] = []
    for hour in range(0, 24, 3):
        parts.append(
            Markup('<text class="axis" x="{}" y="9">{}</text>').format(30 + hour * _STEP, f"{hour:02}")
        )
    for weekday, row in enumerate(counts):
        y = 16 + weekday * _STEP
        parts.append(Markup('<text class="axis" x="0" y="{}">{}</text>').format(y + 9, _WEEKDAYS[weekday]))
        for hour, count in enumerate(row):
            title = f"{_WEEKDAYS[weekday]} {hour:02}:00: {pluralize(count, 'message')}"
            parts.append(_cell(30 + hour * _STEP, y, count, limits, title, ""))
    return _svg("hours", 30 + 24 * _STEP, 16 + 7 * _STEP, "Messages by weekday and hour", parts)


def bar_chart(bars: Sequence[Bar], label: str) -> Markup:
    """Return vertical bars with a label at the first, middle and last one."""
    width, height = _BAR_AREA
    highest = max((bar.value for bar in bars), default=0.0) or 1.0
    step = width / max(len(bars), 1)
    thickness = max(1.0, min(step * 0.72, 28.0))
    parts: list[Markup] = []
    for index, bar in enumerate(bars):
        size = bar.value / highest * (height - 8)
        size = max(size, 1.5) if bar.value else 0.0
        x = index * step + (step - thickness) / 2
        shape = Markup(
            '<rect class="hit" x="{:.1f}" y="0" width="{:.1f}" height="{}"><title>{}</title></rect>'
            '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="1.5"/>'
        ).format(index * step, step, height, bar.title, x, height - size, thickness, size)
        parts.append(_link(bar.url, shape) if bar.url else Markup("<g>{}</g>").format(shape))
    parts.append(Markup('<line class="base" x1="0" x2="{}" y1="{}" y2="{}"/>').format(width, height, height))
    for index, anchor in {0: "start", len(bars) // 2: "middle", len(bars) - 1: "end"}.items():
        if bars and (anchor == "start" or index > 0):
            x = {"start": 0.0, "middle": (index + 0.5) * step, "end": float(width)}[anchor]
            parts.append(
                Markup('<text class="axis" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                    x, height + 14, anchor, bars[index].label
                )
            )
    return _svg("bars", width, height + 18, label, parts)


def share_bar(value: float, highest: float) -> Markup:
    """Return a horizontal bar for a table cell."""
    width = 100 * value / highest if highest > 0 else 0.0
    width = max(width, 0.8) if value > 0 else 0.0
    return Markup(
        '<svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bar" width="{:.1f}" height="6"/></svg>'
    ).format(width)


def _limits(counts: Iterable[int]) -> list[int]:
    """Return the quartiles of the counts above zero. A few very busy days do not make all others pale."""
    known = sorted(count for count in counts if count)
    return [known[len(known) * step // _LEVELS] for step in range(1, _LEVELS)] if known else []


def _cell(x: int, y: int, count: int, limits: Sequence[int], title: str, url: str) -> Markup:
    level = 1 + bisect_right(limits, count) if count else 0
    cell = Markup(
        '<rect class="level-{}" x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}</title></rect>'
    ).format(level, x, y, _CELL, _CELL, title)
    return _link(url, cell) if url else cell


def _link(url: str, content: Markup) -> Markup:
    return Markup('<a href="{}">{}</a>').format(url, content)


def _svg(name: str, width: float, height: float, label: str, parts: Sequence[Markup]) -> Markup:
    return Markup('<svg class="chart {}" viewBox="0 0 {} {}" role="group" aria-label="{}">{}</svg>').format(
        name, width, height, label, Markup("\n").join(parts)
    )
