"""Calendars, heat maps and bars as SVG.

Charts have no inline styles, because the content policy forbids them. Classes set the colors. Every shape
has its number as a tooltip. Grids have a fixed size; bars fill the width, with their labels as HTML.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from markupsafe import Markup

from backscroll.model.text import pluralize

_CELL, _STEP = 11, 14
_MAX_LABELS = 12  # below bars
_LEFT, _TOP = 30, 16  # space for labels
_LEVELS = 4
_WEEKS = 53
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BAR_AREA = (1000, 100)  # width and height; stretched to the size of the page


class Bar(NamedTuple):
    """A bar of a chart."""

    label: str
    value: float
    title: str
    url: str = ""
    is_active: bool = False
    parts: tuple[tuple[int, float], ...] = ()  # series and value, from the bottom; the whole bar if empty


def calendar_chart(counts: Mapping[date, int], today: date, url: Callable[[date], str]) -> Markup:
    """Return the last 53 weeks as a grid of days, Monday on top. Each day is a link."""
    first = today - timedelta(days=today.weekday(), weeks=_WEEKS - 1)
    limits = _limits(count for day, count in counts.items() if first <= day <= today)
    parts: list[Markup] = []
    for week in range(_WEEKS):
        monday = first + timedelta(weeks=week)
        is_month_start = week == 0 or monday.month != (monday - timedelta(weeks=1)).month
        if is_month_start and not (week == 0 and (monday + timedelta(weeks=2)).month != monday.month):
            parts.append(_label(_LEFT + week * _STEP, 9, f"{monday:%b}"))
        for weekday in range(7):
            day = monday + timedelta(days=weekday)
            if day > today:
                break
            count = counts.get(day, 0)
            title = f"{day:%A}, {day.day} {day:%B %Y}: {pluralize(count, 'message')}"
            parts.append(_cell(week, weekday, count, limits, title, url(day) if count else ""))
    for weekday in (0, 2, 4):
        parts.append(_label(0, _TOP + 9 + weekday * _STEP, _WEEKDAYS[weekday]))
    return _grid("calendar", _WEEKS, "Messages per day in the last year", parts)


def hour_chart(counts: Sequence[Sequence[int]]) -> Markup:
    """Return a grid of weekdays and hours."""
    limits = _limits(count for row in counts for count in row)
    parts = [_label(_LEFT + hour * _STEP, 9, f"{hour:02}") for hour in range(0, 24, 3)]
    for weekday, row in enumerate(counts):
        parts.append(_label(0, _TOP + 9 + weekday * _STEP, _WEEKDAYS[weekday]))
        for hour, count in enumerate(row):
            title = f"{_WEEKDAYS[weekday]} {hour:02}:00: {pluralize(count, 'message')}"
            parts.append(_cell(hour, weekday, count, limits, title, ""))
    return _grid("hours", 24, "Messages by weekday and hour", parts)


def legend() -> Markup:
    """Return the colors of the grids from few to many."""
    cells = [
        Markup('<rect class="level-{}" x="{}" width="{}" height="{}" rx="2"/>').format(
            level, level * _STEP, _CELL, _CELL
        )
        for level in range(_LEVELS + 1)
    ]
    return Markup('<svg class="legend" width="{}" height="{}" aria-hidden="true">{}</svg>').format(
        (_LEVELS + 1) * _STEP, _CELL, Markup("").join(cells)
    )


def bar_chart(
    bars: Sequence[Bar],
    label: str,
    *,
    format_value: Callable[[float], str] | None = None,
    is_narrow: bool = False,
) -> Markup:
    """Return vertical bars with labels of some of them and, with ``format_value``, of the values.

    A narrow chart has labels of the first and last bar only.
    """
    width, height = _BAR_AREA
    highest = max((bar.value for bar in bars), default=0.0) or 1.0
    if format_value is not None:
        highest = nice_ceiling(highest)
    step = width / max(len(bars), 1)
    parts: list[Markup] = []
    for index, bar in enumerate(bars):
        shape = Markup(
            '<rect class="hit" x="{:.1f}" y="0" width="{:.1f}" height="{}"><title>{}</title></rect>{}'
        ).format(index * step, step, height, bar.title, _stack(bar, (index + 0.5) * step, step, highest))
        parts.append(_link(bar.url, shape) if bar.url else Markup("<g>{}</g>").format(shape))
    grid = values = Markup("")
    if format_value is not None and bars:
        grid = Markup('<line class="grid" x2="{0}" y1="{1}" y2="{1}"/>').format(width, height / 2)
        values = Markup('<span class="value high">{}</span><span class="value half">{}</span>').format(
            format_value(highest), format_value(highest / 2)
        )
    return Markup(
        '<div class="bar-chart{}">{}<svg class="chart bars" viewBox="0 0 {} {}" preserveAspectRatio="none"'
        ' role="group" aria-label="{}">{}{}</svg>{}</div>'
    ).format(
        " with-values" if values else "",
        values,
        width,
        height,
        label,
        grid,
        Markup("\n").join(parts),
        _axis(bars, is_narrow=is_narrow),
    )


def nice_ceiling(value: float) -> float:
    """Return the next number that is easy to read, such as 1.5, 2 or 6 times a power of ten."""
    scale = 10.0 ** math.floor(math.log10(value))
    return next(
        factor * scale for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if factor * scale >= value * (1 - 1e-9)
    )


def _stack(bar: Bar, center: float, step: float, highest: float) -> Markup:
    """Return the parts of a bar from the bottom up."""
    height = _BAR_AREA[1]
    thickness = min(step * 0.76, 70.0)
    bottom = float(height)
    shapes: list[Markup] = []
    for series, value in bar.parts or ((0, bar.value),):
        size = value / highest * height
        size = max(size, 1.0) if value else 0.0
        bottom -= size
        name = f" series-{series}" if series else ""
        shapes.append(
            Markup('<rect class="bar{}{}" x="{:.1f}" y="{:.2f}" width="{:.1f}" height="{:.2f}"/>').format(
                name, " active" if bar.is_active else "", center - thickness / 2, bottom, thickness, size
            )
        )
    return Markup("").join(shapes)


def _axis(bars: Sequence[Bar], *, is_narrow: bool) -> Markup:
    """Return labels below the bars: of each, or of some if there are many."""
    names, kind = [bar.label for bar in bars], "each"
    if is_narrow and len(bars) > 1:
        names, kind = [names[0], names[-1]], "some"
    elif len(bars) > _MAX_LABELS:
        last = len(bars) - 1
        names, kind = [names[round(last * place / 4)] for place in range(5)], "some"
    labels = Markup("").join(Markup("<span>{}</span>").format(name) for name in names)
    return Markup('<div class="axis-labels {}">{}</div>').format(kind, labels)


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


def _cell(column: int, row: int, count: int, limits: Sequence[int], title: str, url: str) -> Markup:
    level = 1 + bisect_right(limits, count) if count else 0
    cell = Markup(
        '<rect class="level-{}" x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}</title></rect>'
    ).format(level, _LEFT + column * _STEP, _TOP + row * _STEP, _CELL, _CELL, title)
    return _link(url, cell) if url else cell


def _label(x: float, y: float, text: str) -> Markup:
    return Markup('<text class="axis" x="{}" y="{}">{}</text>').format(x, y, text)


def _link(url: str, content: Markup) -> Markup:
    """Return a link for pointers. For the keyboard, the table of the chart has the same links."""
    return Markup('<a href="{}" tabindex="-1">{}</a>').format(url, content)


def _grid(name: str, columns: int, label: str, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart {}" width="{}" height="{}" role="group" aria-label="{}">{}</svg>'
    ).format(name, _LEFT + columns * _STEP, _TOP + 7 * _STEP, label, Markup("\n").join(parts))
