"""The session list with its filters."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from backscroll.history.history import History
from backscroll.model.session import FacetValue, SessionFacets, SessionSummary
from backscroll.web.pages.home import empty_archive
from backscroll.web.templating import distinct_labels, render
from backscroll.web.urls import LIST_FILTERS, PAGE_SIZE, SORT_LABELS, SessionQuery

_MAX_OPEN_VALUES = 8  # of a filter; the others are folded


class Choice(Struct, frozen=True):
    """A value of a filter as a link."""

    label: str
    title: str
    count: int
    url: str
    is_active: bool


class FilterBox(NamedTuple):
    """A filter with its values."""

    label: str
    choices: list[Choice]
    more: list[Choice]  # folded


def sessions_page(history: History, request: Request) -> Response:
    """Return one page of the list."""
    query = SessionQuery.parse(request.query_params)
    filter_ = query.filter()
    result = history.list_sessions(filter_, limit=PAGE_SIZE, offset=query.offset, sort=query.sort)
    total = result.pagination.total
    last_page = max(1, -(-total // PAGE_SIZE))
    live = history.live_sessions()
    has_sessions = bool(total) or history.list_sessions(limit=1).pagination.total > 0
    return render(
        request,
        "sessions.html",
        query=query,
        groups=group_by_date(result.data) if query.sort == "updated" else [("", list(result.data))],
        total=total,
        first=query.offset + 1,
        last=query.offset + len(result.data),
        live=live,
        filters=list(_filters(query, history.session_facets(filter_))) if has_sessions else [],
        sorts=[(label, query.url(sort=key), key == query.sort) for key, label in SORT_LABELS.items()],
        previous_url=query.url(page=min(query.page - 1, last_page)) if query.page > 1 else None,
        next_url=query.url(page=query.page + 1) if result.pagination.has_more else None,
        empty=None if has_sessions else empty_archive(history),
    )


def _filters(query: SessionQuery, facets: SessionFacets) -> Iterator[FilterBox]:
    """Yield the flags as one box, then the filters with values."""
    flags = []
    for name, each in LIST_FILTERS.items():
        if each.kind == "flag":
            count, is_active = getattr(facets, each.text.facet), name in query.filters
            if count or is_active:
                url = query.url(**{name: "" if is_active else 1})
                flags.append(Choice(each.label, each.label, count, url, is_active))
    yield FilterBox("Show", flags, [])
    for name, each in LIST_FILTERS.items():
        if each.kind != "flag" and each.text.facet:
            choices = list(_choices(query, name, getattr(facets, each.text.facet)))
            choices.sort(key=lambda choice: not choice.is_active)  # the active one is always visible
            if choices:
                yield FilterBox(each.label, choices[:_MAX_OPEN_VALUES], choices[_MAX_OPEN_VALUES:])


def _choices(query: SessionQuery, name: str, values: Iterable[FacetValue]) -> Iterator[Choice]:
    current = query.filters.get(name, "")
    values = tuple(values)
    known = [value.value for value in values]
    values += (FacetValue(current, current, 0),) if current and current not in known else ()
    labels = distinct_labels((value.value, value.label) for value in values)
    for value, label in zip(values, labels, strict=True):
        is_active = value.value == current
        url = query.url(**{name: "" if is_active else value.value})
        yield Choice(label, value.value, value.count, url, is_active)


def group_by_date(
    summaries: Iterable[SessionSummary], today: date | None = None
) -> list[tuple[str, list[SessionSummary]]]:
    """Return sessions in groups by the local date of their last activity: by day, then by month."""
    today = today or datetime.now().astimezone().date()
    groups = groupby(summaries, lambda summary: _date_label(summary.updated_at, today))
    return [(label, list(group)) for label, group in groups]


def _date_label(at: datetime | None, today: date) -> str:
    if at is None:
        return "Without a date"
    day = at.astimezone().date()
    if day == today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if today - timedelta(days=7) < day < today:
        return f"{day:%A}, {day.day} {day:%B}"
    return f"{day:%B %Y}"
