"""Figures of the home page: cards, calendar, hours, charts, tables and top sessions of a time range."""

from starlette.requests import Request
from starlette.responses import Response

from backscroll.history import History
from backscroll.web.charts import bar_chart, calendar_chart, hour_chart, legend
from backscroll.web.figures.bars import PeriodBars, period_url
from backscroll.web.figures.cards import calendar_facts, cards
from backscroll.web.figures.data import CACHE, FigureData, cache_name
from backscroll.web.figures.query import METRICS, RANGES, TOPS, FigureQuery
from backscroll.web.figures.shares import share_tables
from backscroll.web.labels import distinct_labels
from backscroll.web.templating import render

__all__ = ["Figures", "figures_page"]

MAX_WORKSPACES = 100  # in the list of the filter, the last used first


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
        self.uncounted_sessions = report.uncounted_sessions
        self.ranges = query.links(
            "range", {name: label for name, (label, _, _) in RANGES.items()}, query.range
        )
        self.metrics = query.links("metric", METRICS, query.metric)
        self.stacks = query.links("stack", query.stacks, query.stacked_by)
        self.orders = query.links("top", {name: label for name, (label, _) in TOPS.items()}, query.top)
        self.cards = cards(report)
        self.calendar = calendar_chart(data.days, data.today, lambda day: period_url(day.isoformat()))
        self.calendar_rows = [
            (day, period_url(day.isoformat()), count)
            for day, count in sorted(data.days.items(), reverse=True)
            if count
        ]
        self.facts = list(calendar_facts(data.days, data.today))
        self.legend = legend()
        self.hours = hour_chart(data.breakdown.hours)
        self.hour_rows = data.breakdown.hours
        self.metric_label = METRICS[query.metric]
        self.period = str(period)
        bars = PeriodBars(report, data.breakdown.series[query.stacked_by], period, query.metric, data)
        label = f"{self.metric_label} by {period}"
        self.bars = bar_chart(bars.bars, label, format_value=bars.format_value)
        self.bar_rows = bars.rows
        self.bar_legend = bars.legend
        self.top = data.tops[query.top]
        self.tables = list(share_tables(data))


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
