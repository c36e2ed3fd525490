"""Values by day, week or month: bars, their legend, and rows of a table."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from functools import partial
from typing import NamedTuple

from backscroll.history import History
from backscroll.model.statistics import By, Report, Series, Sums
from backscroll.model.text import pluralize
from backscroll.render.terminal.humanize import compact_number, format_cost, format_usd
from backscroll.web.charts import Bar
from backscroll.web.figures.data import FigureData
from backscroll.web.figures.names import short_name
from backscroll.web.labels import distinct_labels
from backscroll.web.session_query import SessionQuery

__all__ = ["BarRow", "LegendEntry", "PeriodBars", "changed_lines", "period_url"]


class BarRow(NamedTuple):
    """A period in the table of the bars."""

    name: str
    url: str
    values: list[str]


class LegendEntry(NamedTuple):
    """A part of the bars."""

    number: int  # of its color
    label: str
    title: str
    value: str


class PeriodBars:
    """Bars of one value, from the first period with messages to now, also for those without any."""

    def __init__(self, report: Report, series: Series, period: By, metric: str, data: FigureData) -> None:
        self._series = series
        self._value: Callable[[Sums], float] = partial(_metric, metric=metric)
        self._format: Callable[[float], str] = partial(_format, metric=metric)
        groups = _in_fixed_order(series)
        self._groups: Sequence[str | None] = [*groups, None]
        labels = distinct_labels((group, short_name(group)) for group in groups)
        self._labels: dict[str | None, str] = {None: "Others", **dict(zip(groups, labels, strict=True))}
        known = {row.key: row for row in report.rows if row.key is not None}
        names = _periods(known, period, data)
        self.bars = [self._bar(name, day, known.get(name), period) for name, day in names.items()]
        self.rows = [
            BarRow(row.key, period_url(row.key), _table_values(row)) for row in report.rows if row.key
        ][::-1]
        self.legend = list(self._legend(names))

    def format_value(self, value: float) -> str:
        """Return a label of the axis."""
        return self._format(value)

    def _legend(self, names: dict[str, date]) -> Iterator[LegendEntry]:
        for number, group in enumerate(self._groups, start=1):
            total = sum(self._part(name, group) for name in names)
            if total:
                color = number if group is not None else len(self._groups)
                yield LegendEntry(color, self._labels[group], group or "", self._format(total))

    def _part(self, name: str, group: str | None) -> float:
        row = self._series.sums.get((name, group))
        return self._value(row) if row is not None else 0

    def _bar(self, name: str, day: date, row: Sums | None, period: By) -> Bar:
        label = f"{day:%b %Y}" if period == "month" else f"{day.day} {day:%b}"
        if row is None:
            return Bar(label, 0, f"{name}: nothing")
        values = [(number, self._part(name, group)) for number, group in enumerate(self._groups, start=1)]
        parts = tuple((number, value) for number, value in values if value)
        shares = [
            f"{self._labels[group]}: {self._format(self._part(name, group))}"
            for group in self._groups
            if self._part(name, group)
        ]
        title = "\n".join([_title(name, row), *(shares if len(shares) > 1 else [])])
        value = sum(value for _, value in parts) if parts else self._value(row)
        return Bar(label, value, title, period_url(name), parts=parts)


def _in_fixed_order(series: Series) -> tuple[str, ...]:
    """Return the groups. Sources have the same color on every page."""
    if series.by != "source":
        return series.groups
    return tuple(name for name in History.source_names() if name in series.groups)


def _periods(known: dict[str, Sums], period: By, data: FigureData) -> dict[str, date]:
    """Return the names of all periods, each with its first day."""
    day = _first_day(known, period, data.today)
    day = max(data.since.date(), day) if data.since is not None else day
    names: dict[str, date] = {}
    while day <= data.today:
        names.setdefault(_period_name(day, period), day)
        day += timedelta(days=1 if period != "month" else 20)
    names.setdefault(_period_name(data.today, period), data.today)
    return names


def _first_day(known: dict[str, Sums], period: By, today: date) -> date:
    """Return the first day of the first period with messages."""
    suffix = {"day": "", "week": "-1", "month": "-01"}[period]
    return min((date.fromisoformat(name + suffix) for name in known), default=today)


def _period_name(day: date, period: By) -> str:
    return day.strftime({"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}[period])


def _title(name: str, row: Sums) -> str:
    title = f"{name}: {pluralize(row.sessions, 'session')}, {pluralize(row.messages or 0, 'message')}"
    title += f", {pluralize(row.prompts or 0, 'prompt')}"
    if row.tokens is not None:
        title += f", {compact_number(row.tokens.total)} tokens"
    if cost := format_cost(row):
        title += f", {cost}"
    if lines := changed_lines(row):
        title += f", {lines} lines"
    return title


def _metric(row: Sums, *, metric: str) -> float:
    match metric:
        case "sessions":
            return row.sessions
        case "tokens":
            return row.tokens.total if row.tokens is not None else 0
        case "cost":
            return row.cost_usd or 0
        case "lines":
            return (row.lines_added or 0) + (row.lines_removed or 0)
    return row.messages or 0


def _format(value: float, *, metric: str) -> str:
    if metric == "cost":
        return format_usd(value)
    return compact_number(int(value)) if value == int(value) else f"{value:.1f}"


def _table_values(row: Sums) -> list[str]:
    tokens = compact_number(row.tokens.total) if row.tokens is not None else ""
    counts = [row.sessions, row.prompts or 0, row.messages or 0]
    return [*(f"{count:,}" for count in counts), tokens, format_cost(row), changed_lines(row)]


def period_url(name: str) -> str:
    """Return the address of the sessions of a day, week or month."""
    return SessionQuery(since=name, until=name).url()


def changed_lines(row: Sums) -> str:
    """Return added and removed lines; empty if there are none."""
    if not row.lines_added and not row.lines_removed:
        return ""
    return f"+{row.lines_added or 0:,} −{row.lines_removed or 0:,}"
