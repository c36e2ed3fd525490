"""Figures of the home page: cards, calendar, hours, charts, tables and top sessions of a time range."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.model.dates import midnight
from backscroll.model.session import Filter, SessionSummary, SortKey
from backscroll.model.statistics import Breakdown, By, Report, Series, SeriesGroup, Sums, Tokens
from backscroll.model.text import one_line, pluralize
from backscroll.render.humanize import (
    compact_number,
    format_cost,
    format_duration,
    format_percent,
    format_usd,
)
from backscroll.render.statistics import uncounted_note
from backscroll.web.charts import Bar, bar_chart, calendar_chart, hour_chart, legend, share_bar
from backscroll.web.served_history import ResultCache
from backscroll.web.templating import distinct_labels, render
from backscroll.web.urls import SessionQuery, with_query

RANGES: dict[str, tuple[str, int | None, By]] = {  # label, days, period of the bars
    "30d": ("30 days", 30, "day"),
    "90d": ("90 days", 90, "day"),
    "year": ("Year", 365, "week"),
    "all": ("All", None, "month"),
}
METRICS = {
    "messages": "Messages",
    "sessions": "Sessions",
    "tokens": "Tokens",
    "cost": "Cost",
    "lines": "Lines",
}
STACKS: dict[SeriesGroup, str] = {"source": "Source", "workspace": "Workspace", "model": "Model"}
TOPS: dict[str, tuple[str, SortKey]] = {
    "tokens": ("Tokens", "tokens"),
    "messages": ("Messages", "messages"),
    "prompts": ("Prompts", "prompts"),
    "lines": ("Changed lines", "lines"),
}
_METRICS_OF_MODELS = ("tokens", "cost")  # messages and lines have no model
_MAX_VALUE_CHARS = 1000

MAX_AGE = timedelta(minutes=1)
MAX_GROUPS = 5  # of a bar; all others are one part
MAX_FILES = 8
MAX_WORKSPACES = 100  # in the list of the filter, the last used first
TOP_SESSIONS = 8
_CALENDAR_DAYS = 53 * 7
_MANY_HOURS = 100
_MAX_NAME_CHARS = 60
_MAX_ROWS = 8


class FigureQuery(NamedTuple):
    """Time range, value and parts of the bars, order of the top sessions, and filters."""

    range: str = "year"
    metric: str = "messages"
    stack: SeriesGroup = "source"
    top: str = "tokens"
    source: str = ""
    workspace: str = ""

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> "FigureQuery":
        """Read the query of an address. Raises `UsageError` for an invalid value."""
        known: dict[str, tuple[str, Mapping[str, object]]] = {
            "range": ("a time range", RANGES),
            "metric": ("a value", METRICS),
            "stack": ("a group", {str(name): label for name, label in STACKS.items()}),
            "top": ("an order", TOPS),
        }
        for name, (what, allowed) in known.items():
            if name in values and values[name] not in allowed:
                raise UsageError(f"{values[name][:40]!r} is not {what}. Use one of: {', '.join(allowed)}.")
        texts: dict[str, Any] = {
            name: values.get(name, "")[:_MAX_VALUE_CHARS].strip() for name in ("source", "workspace")
        }
        given: dict[str, Any] = {name: values[name] for name in known if name in values}
        return cls(**given, **texts)

    @property
    def stacked_by(self) -> SeriesGroup:
        """The parts of the bars. A value that has no model is shown by source instead."""
        if self.stack == "model" and self.metric not in _METRICS_OF_MODELS:
            return "source"
        return self.stack

    @property
    def stacks(self) -> dict[str, str]:
        """The possible parts of the bars."""
        has_models = self.metric in _METRICS_OF_MODELS
        return {name: label for name, label in STACKS.items() if name != "model" or has_models}

    def url(self, path: str = "/", **changes: Any) -> str:
        """Return the address of these figures with some values changed."""
        changed, default = self._replace(**changes), FigureQuery()
        given = {name: value for name, value in changed._asdict().items() if value != getattr(default, name)}
        return with_query(path, given)

    def links(self, name: str, labels: Mapping[str, str], current: str) -> list[tuple[str, str, bool]]:
        """Return label, address and whether it is the current one, of each value."""
        return [(label, self.url(**{name: value}), value == current) for value, label in labels.items()]

    def hidden(self) -> list[tuple[str, str]]:
        """Return what a form with the filters keeps."""
        default = FigureQuery()
        return [
            (name, getattr(self, name))
            for name in ("range", "metric", "stack", "top")
            if getattr(self, name) != getattr(default, name)
        ]


class FigureData(NamedTuple):
    """Numbers of a time range, computed when the archive has changed."""

    since: datetime | None
    today: date
    breakdown: Breakdown
    days: dict[date, int]
    tops: dict[str, tuple[SessionSummary, ...]]


def figures_page(history: History, request: Request) -> Response:
    """Return only the figures. The home page of a large archive loads them after everything else."""
    query = FigureQuery.parse(request.query_params)
    figures = Figures(history, CACHE.get(history, cache_name(query)), query)
    return render(request, "figures_page.html", figures=figures)


class Figures:
    """Cards, charts and tables for the template."""

    def __init__(self, history: History, data: FigureData, query: FigureQuery) -> None:
        _, _, period = RANGES[query.range]
        report = data.breakdown.reports[period]
        self.query = query
        self.sources = History.source_names()
        self.workspaces = list(_workspaces(history, query.workspace))
        self.prices_checked = report.prices_checked
        self.uncounted = uncounted_note(report.uncounted_sessions) if report.uncounted_sessions else ""
        self.ranges = query.links(
            "range", {name: label for name, (label, _, _) in RANGES.items()}, query.range
        )
        self.metrics = query.links("metric", METRICS, query.metric)
        self.stacks = query.links("stack", query.stacks, query.stacked_by)
        self.orders = query.links("top", {name: label for name, (label, _) in TOPS.items()}, query.top)
        self.cards = cards(report)
        self.calendar = calendar_chart(data.days, data.today, lambda day: _period_url(day.isoformat()))
        self.calendar_rows = [
            (day, _period_url(day.isoformat()), count)
            for day, count in sorted(data.days.items(), reverse=True)
            if count
        ]
        self.facts = list(calendar_facts(data.days, data.today))
        self.legend = legend()
        self.hours = hour_chart(data.breakdown.hours)
        self.hour_rows = data.breakdown.hours
        self.metric_label = METRICS[query.metric]
        self.period = str(period)
        bars = _PeriodBars(report, data.breakdown.series[query.stacked_by], period, query.metric, data)
        label = f"{self.metric_label} by {period}"
        self.bars = bar_chart(bars.bars, label, format_value=bars.format_value)
        self.bar_rows = bars.rows
        self.bar_legend = bars.legend
        self.top = data.tops[query.top]
        self.tables = list(_share_tables(data))


def _workspaces(history: History, current: str) -> list[tuple[str, str]]:
    """Return value and label of the workspaces to choose from."""
    found = {
        f"{one.host}:{one.path}" if one.host else one.path: one.name or one.path
        for one in history.list_workspaces()[:MAX_WORKSPACES]
    }
    if current:
        found.setdefault(current, current)
    labelled = zip(found, distinct_labels(found.items()), strict=True)
    return sorted(labelled, key=lambda item: item[1].casefold())


class FigureName(NamedTuple):
    """Time range and filters of the numbers."""

    range: str
    source: str
    workspace: str


def cache_name(query: FigureQuery) -> FigureName:
    """Return what determines the numbers of a query."""
    return FigureName(query.range, query.source, query.workspace)


def compute_figures(history: History, name: FigureName, now: datetime) -> FigureData:
    """Return the numbers of a time range."""
    range_name, source, workspace = name
    _, days, period = RANGES[range_name]
    today = now.astimezone().date()
    since = midnight(today - timedelta(days=days - 1)) if days is not None else None
    filter_ = Filter(since=since, source=source or None, workspace=workspace or None)
    breakdown = history.statistics.breakdown(
        filter_,
        period=period,
        by=("source", "workspace", "model", "tool"),
        stacked_by=list(STACKS),
        max_groups=MAX_GROUPS,
        max_files=MAX_FILES,
    )
    has_sessions = breakdown.reports[period].total.sessions > 0  # not if the source is unknown
    calendar_since = midnight(today - timedelta(days=_CALENDAR_DAYS))
    by_day = history.statistics.report(
        Filter(since=calendar_since, source=filter_.source, workspace=filter_.workspace), by="day"
    )
    return FigureData(
        since=since,
        today=today,
        breakdown=breakdown,
        days={date.fromisoformat(row.key): row.messages or 0 for row in by_day.rows if row.key},
        tops={
            key: history.list_sessions(filter_, limit=TOP_SESSIONS, sort=sort).data if has_sessions else ()
            for key, (_, sort) in TOPS.items()
        },
    )


CACHE = ResultCache(compute_figures, MAX_AGE)


class Card(NamedTuple):
    """A sum with an explanation."""

    label: str
    value: str
    note: str
    title: str = ""


def cards(report: Report) -> list[Card]:
    """Return the sums of a report. Those without a value are left out."""
    total = report.total
    active_days = sum(1 for row in report.rows if row.key and row.messages)
    periods = f"in {pluralize(active_days, str(report.by))}"
    prompts, messages = total.prompts or 0, total.messages or 0
    tokens = total.tokens
    cached = tokens.cache_read / tokens.total if tokens is not None and tokens.total else None
    found = [
        Card("Sessions", f"{total.sessions:,}", periods),
        Card(
            "Prompts",
            f"{prompts:,}" if total.prompts is not None else "",
            _ratio(prompts, total.sessions, "per session"),
        ),
        Card("Messages", f"{messages:,}", _ratio(messages, prompts, "per prompt")),
        Card(
            "Active time",
            _hours(total.active_seconds) if total.active_seconds is not None else "",
            _per_session(total),
            format_duration(total.active_seconds or 0),
        ),
        Card(
            "Tokens",
            f"{'≥ ' if total.is_at_least else ''}{compact_number(tokens.total)}"
            if tokens is not None
            else "",
            f"{format_percent(cached)} from the cache" if cached is not None else "",
            _token_title(total),
        ),
        Card(
            "Cost",
            format_cost(total),
            _cost_per_prompt(report),
            f"At the prices of {report.prices_checked}",
        ),
        Card(
            "Changed lines",
            f"{(total.lines_added or 0) + (total.lines_removed or 0):,}"
            if total.lines_added or total.lines_removed
            else "",
            f"+{total.lines_added or 0:,} −{total.lines_removed or 0:,}",
        ),
        Card(
            "Edits accepted",
            format_percent(total.acceptance_rate) if total.acceptance_rate is not None else "",
            f"of {total.edits_decided or 0:,}",
        ),
    ]
    return [card for card in found if card.value]


def _cost_per_prompt(report: Report) -> str:
    """Return the cost per prompt of the sessions with a cost."""
    if not report.total.cost_usd or not report.priced_prompts:
        return ""
    note = f"{format_usd(report.total.cost_usd / report.priced_prompts)} per prompt"
    return note if report.priced_prompts == report.total.prompts else f"{note} with a known cost"


def _hours(seconds: float) -> str:
    """Return a duration, without minutes if it is long."""
    hours = seconds / 3600
    return f"{hours:,.0f} h" if hours >= _MANY_HOURS else format_duration(seconds)


def _ratio(count: int, base: int, what: str) -> str:
    return f"{count / base:,.1f} {what}" if base else ""


def _per_session(total: Sums) -> str:
    if not total.sessions or not total.active_seconds:
        return ""
    return f"{format_duration(total.active_seconds / total.sessions)} per session"


def _token_title(total: Sums) -> str:
    tokens = total.tokens
    if tokens is None:
        return ""
    return (
        f"{tokens.total:,}: {tokens.input:,} input, {tokens.output:,} output,"
        f" {tokens.cache_write + tokens.cache_write_1h:,} cache write, {tokens.cache_read:,} cache read"
    )


def calendar_facts(days: Mapping[date, int], today: date) -> Iterator[tuple[str, str]]:
    """Yield label and value of what the calendar shows."""
    active = sorted(day for day, count in days.items() if count)
    if not active:
        return
    yield "Active days", f"{len(active):,}"
    busiest = max(active, key=lambda day: (days[day], day))
    yield "Busiest day", f"{busiest.day} {busiest:%b %Y}, {pluralize(days[busiest], 'message')}"
    streaks: list[list[date]] = []
    for day in active:
        if streaks and streaks[-1][-1] + timedelta(days=1) == day:
            streaks[-1].append(day)
        else:
            streaks.append([day])
    longest = max(streaks, key=lambda streak: (len(streak), streak[0]))
    yield "Longest streak", f"{pluralize(len(longest), 'day')}, from {longest[0].day} {longest[0]:%b %Y}"
    if streaks[-1][-1] >= today - timedelta(days=1):
        yield "Current streak", pluralize(len(streaks[-1]), "day")


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


class _PeriodBars:
    """Bars of one value, from the first period with messages to now, also for those without any."""

    def __init__(self, report: Report, series: Series, period: By, metric: str, data: FigureData) -> None:
        self._series = series
        self._value: Callable[[Sums], float] = partial(_metric_value, metric=metric)
        self._format: Callable[[float], str] = partial(_format_metric, metric=metric)
        groups = _in_fixed_order(series)
        self._groups: Sequence[str | None] = [*groups, None]
        labels = distinct_labels((group, _short_name(group)) for group in groups)
        self._labels: dict[str | None, str] = {None: "Others", **dict(zip(groups, labels, strict=True))}
        known = {row.key: row for row in report.rows if row.key is not None}
        names = _periods(known, period, data)
        self.bars = [self._bar(name, day, known.get(name), period) for name, day in names.items()]
        self.rows = [
            BarRow(row.key, _period_url(row.key), _table_values(row)) for row in report.rows if row.key
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
        title = "\n".join([_bar_title(name, row), *(shares if len(shares) > 1 else [])])
        value = sum(value for _, value in parts) if parts else self._value(row)
        return Bar(label, value, title, _period_url(name), parts=parts)


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


def _bar_title(name: str, row: Sums) -> str:
    title = f"{name}: {pluralize(row.sessions, 'session')}, {pluralize(row.messages or 0, 'message')}"
    title += f", {pluralize(row.prompts or 0, 'prompt')}"
    if row.tokens is not None:
        title += f", {compact_number(row.tokens.total)} tokens"
    if cost := format_cost(row):
        title += f", {cost}"
    if lines := _changed_lines(row):
        title += f", {lines} lines"
    return title


def _metric_value(row: Sums, *, metric: str) -> float:
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


def _format_metric(value: float, *, metric: str) -> str:
    if metric == "cost":
        return format_usd(value)
    return compact_number(int(value)) if value == int(value) else f"{value:.1f}"


def _table_values(row: Sums) -> list[str]:
    tokens = compact_number(row.tokens.total) if row.tokens is not None else ""
    counts = [row.sessions, row.prompts or 0, row.messages or 0]
    return [*(f"{count:,}" for count in counts), tokens, format_cost(row), _changed_lines(row)]


def _period_url(name: str) -> str:
    """Return the address of the sessions of a day, week or month."""
    return SessionQuery().url(since=name, until=name)


def _changed_lines(row: Sums) -> str:
    """Return added and removed lines; empty if there are none."""
    if not row.lines_added and not row.lines_removed:
        return ""
    return f"+{row.lines_added or 0:,} −{row.lines_removed or 0:,}"


class ShareRow(NamedTuple):
    """A row of a table with a bar."""

    label: str
    title: str
    url: str
    bar: Markup
    values: list[str]


class ShareTable(NamedTuple):
    """Figures by source, workspace, model or tool."""

    title: str
    columns: list[str]
    rows: list[ShareRow]
    more: list[ShareRow]


def _share_tables(data: FigureData) -> Iterator[ShareTable]:
    """Yield the tables of a time range."""
    reports = data.breakdown.reports
    yield _share_table("Sources", reports["source"].rows, _activity_columns, _source_url)
    yield _share_table("Workspaces", reports["workspace"].rows, _activity_columns, _workspace_url)
    yield _share_table("Models", reports["model"].rows, _model_columns, _model_url)
    yield _share_table("Tools", reports["tool"].rows, _tool_columns, _no_url)
    yield _file_table(data)
    yield _token_table(next(iter(reports.values())).total.tokens)


def _file_table(data: FigureData) -> ShareTable:
    """Return the files with the most edits."""
    files = data.breakdown.files
    highest = max((file.edits for file in files), default=0)
    rows = [
        ShareRow(
            _short_name(file.path),
            file.path,
            _file_url(file.path),
            share_bar(file.edits, highest),
            [f"{file.edits:,}", f"+{file.added:,} −{file.removed:,}" if file.added or file.removed else ""],
        )
        for file in files
    ]
    return ShareTable("Most edited files", ["Edits", "Lines"], rows, [])


def _token_table(tokens: Tokens | None) -> ShareTable:
    """Return the kinds of tokens."""
    if tokens is None:
        return ShareTable("Tokens", [], [], [])
    counts = {
        "Cache reads": tokens.cache_read,
        "Cache writes": tokens.cache_write + tokens.cache_write_1h,
        "Input": tokens.input,
        "Output": tokens.output,
    }
    rows = [
        ShareRow(
            name,
            f"{count:,}",
            "",
            share_bar(count, max(counts.values())),
            [compact_number(count), _share(count, tokens)],
        )
        for name, count in counts.items()
        if count
    ]
    return ShareTable("Kinds of tokens", ["Tokens", "Share"], rows, [])


def _share(count: int, tokens: Tokens) -> str:
    return format_percent(count / tokens.total) if tokens.total else ""


_Columns = Callable[[Sums | None], tuple[list[str], float]]  # values of a row, and the length of its bar


def _share_table(
    title: str, sums: Sequence[Sums], columns: _Columns, url: Callable[[str], str]
) -> ShareTable:
    ranked = sorted((row for row in sums if row.key is not None), key=lambda row: -columns(row)[1])
    highest = max((columns(row)[1] for row in ranked), default=0)
    rows = []
    labels = distinct_labels((row.key or "", _short_name(row.key or "")) for row in ranked)
    for row, label in zip(ranked, labels, strict=True):
        key = row.key or ""
        values, length = columns(row)
        rows.append(ShareRow(label, key, url(key), share_bar(length, highest), values))
    return ShareTable(title, columns(None)[0], rows[:_MAX_ROWS], rows[_MAX_ROWS:])


def _activity_columns(row: Sums | None) -> tuple[list[str], float]:
    if row is None:
        return ["Sessions", "Messages", "Lines", "Cost"], 0
    values = [f"{row.sessions:,}", f"{row.messages or 0:,}", _changed_lines(row), format_cost(row)]
    return values, row.messages or 0


def _model_columns(row: Sums | None) -> tuple[list[str], float]:
    if row is None:
        return ["Sessions", "Tokens", "Cost"], 0
    total = row.tokens.total if row.tokens is not None else 0
    tokens = compact_number(total) if row.tokens is not None else ""
    return [f"{row.sessions:,}", tokens, format_cost(row)], total


def _tool_columns(row: Sums | None) -> tuple[list[str], float]:
    if row is None:
        return ["Calls", "Failed"], 0
    failures = f"{row.tool_failures:,}" if row.tool_failures else ""
    return [f"{row.tool_calls or 0:,}", failures], row.tool_calls or 0


def _source_url(name: str) -> str:
    return SessionQuery().url(source=name)


def _workspace_url(name: str) -> str:
    return SessionQuery().url(workspace=name)


def _model_url(name: str) -> str:
    return SessionQuery().url(model=name)


def _file_url(path: str) -> str:
    """Return the address of a search for the edits of a file."""
    return with_query("/search", {"q": f'file:"{path.replace(chr(34), "*")}" is:edit'})


def _no_url(name: str) -> str:
    return ""


def _short_name(name: str) -> str:
    """Return the last part of a path; any other name as it is."""
    is_path = name.startswith(("/", "\\")) or name[1:3] in (":\\", ":/")
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return one_line(last or name if is_path else name, _MAX_NAME_CHARS)
