"""Filters beside the search results. Each link adds a filter to the query, or removes it."""

import re
from collections.abc import Iterable, Sequence
from datetime import date

from markupsafe import Markup

from backscroll.model.search import FilterItem, SearchFacets
from backscroll.model.session import FacetValue
from backscroll.model.text import pluralize
from backscroll.web.charts import Bar, bar_chart
from backscroll.web.pages.sessions import Choice, FilterBox
from backscroll.web.urls import with_query

__all__ = ["Facets", "QueryText"]

_MAX_OPEN_VALUES = 6  # of a filter; the others are folded
_DATES = ("since", "until")
_PRESETS = (("7 days", "7d"), ("30 days", "30d"), ("a year", "1y"))
_ROLE_LABELS = {"user": "You", "assistant": "Assistant", "thinking": "Thinking", "tool": "Tool calls"}
_ROLE_LABELS |= {"error": "Errors", "system": "System"}
_KIND_LABELS = {"edit": "Edits of files", "error": "Failures"}
_LAST_OPERATORS = re.compile(r"(?:(?:^|\s+)(?:OR|AND|NOT))+\s*$")
_NEEDS_QUOTES = re.compile(r"\s")


class QueryText:
    """The text of a query, which links change. With a ``pattern``, the text only has filters."""

    def __init__(
        self, text: str, items: Sequence[FilterItem], pattern: tuple[str, str] | None = None
    ) -> None:
        self._text = text
        self._items = items
        self._pattern = pattern  # the pattern and its kind

    def url(self, text: str) -> str:
        """Return the address of the results of a changed text."""
        if self._pattern is None:
            return with_query("/search", {"q": text})
        pattern, mode = self._pattern
        return with_query("/search", {"q": pattern, "mode": mode, "filter": text})

    @property
    def is_pattern(self) -> bool:
        """Whether text or a regular expression is searched, not words."""
        return self._pattern is not None

    def find(self, name: str, values: Iterable[str]) -> FilterItem | None:
        """Return the filter of a name with one of these values."""
        folded = {value.casefold() for value in values}
        return next(
            (
                item
                for item in self._items
                if item.name == name and not item.is_excluded and item.value.casefold() in folded
            ),
            None,
        )

    def without(self, *items: FilterItem) -> str:
        """Return the text without some filters."""
        text = self._text
        for item in sorted(items, key=lambda item: -item.start):
            text = f"{text[: item.start].rstrip()} {text[item.end :].lstrip()}".strip()
        return text

    def with_filter(self, name: str, value: str) -> str:
        """Return the text with one more filter."""
        return _joined(self._text.strip(), _filter_text(name, value))

    def with_dates(self, since: str, until: str = "") -> str:
        """Return the text with this time range instead of any other."""
        text = self.without(*(item for item in self._items if item.name in _DATES))
        return _joined(text, f"since:{since}", f"until:{until}" if until else "")

    def active(self) -> list[tuple[str, str, str]]:
        """Return the filters of the query: name, value and the address without each."""
        return [
            (f"{'not ' if item.is_excluded else ''}{item.name}", item.value, self.url(self.without(item)))
            for item in self._items
        ]

    def is_date(self, name: str) -> bool:
        """Return whether the time range is exactly this period."""
        dates = [(item.name, item.value) for item in self._items if item.name in _DATES]
        return sorted(dates) == [("since", name), ("until", name)]

    def has_since(self, value: str) -> bool:
        """Return whether the time range only starts at this value."""
        return [(item.name, item.value) for item in self._items if item.name in _DATES] == [("since", value)]

    def without_dates(self) -> str:
        """Return the text without a time range."""
        return self.without(*(item for item in self._items if item.name in _DATES))


class Facets:
    """Filters with the number of messages that each of them would find."""

    def __init__(self, text: QueryText, counts: SearchFacets) -> None:
        self._text = text
        self.total = counts.total
        self.is_partial = counts.is_partial
        self.is_pattern = text.is_pattern
        boxes = (
            self._box("role", "Role", [_labelled(value, _ROLE_LABELS) for value in counts.roles]),
            self._box("is", "Kind", [_labelled(value, _KIND_LABELS) for value in counts.kinds]),
            self._box("source", "Source", counts.sources),
            self._box("workspace", "Workspace", counts.workspaces),
            self._box("model", "Model", counts.models),
        )
        self.boxes = [box for box in boxes if box.choices]
        self.presets = [
            (
                label,
                text.url(text.without_dates() if text.has_since(value) else text.with_dates(value)),
                text.has_since(value),
            )
            for label, value in _PRESETS
        ]
        bars = [self._bar(value) for value in counts.dates]
        self.timeline: Markup | None = None
        if len(bars) > 1:
            self.timeline = bar_chart(bars, "Messages by date", is_narrow=True)
        self.dates = [
            Choice(bar.label, bar.label, int(bar.value), bar.url, bar.is_active)
            for bar in bars[::-1]
            if bar.value
        ]

    def _box(self, name: str, label: str, values: Iterable[FacetValue]) -> FilterBox:
        choices = [self._choice(name, value) for value in values]
        choices.sort(key=lambda choice: not choice.is_active)  # the active one is always visible
        return FilterBox(label, choices[:_MAX_OPEN_VALUES], choices[_MAX_OPEN_VALUES:])

    def _choice(self, name: str, value: FacetValue) -> Choice:
        item = self._text.find(name, (value.value, value.label))
        changed = self._text.without(item) if item is not None else self._text.with_filter(name, value.value)
        return Choice(value.label, value.value, value.count, self._text.url(changed), item is not None)

    def _bar(self, value: FacetValue) -> Bar:
        name, is_active = value.value, self._text.is_date(value.value)
        changed = self._text.without_dates() if is_active else self._text.with_dates(name, name)
        title = f"{_date_label(name)}: {pluralize(value.count, 'message')}"
        return Bar(
            _date_label(name), value.count, title, self._text.url(changed) if value.count else "", is_active
        )


def _labelled(value: FacetValue, labels: dict[str, str]) -> FacetValue:
    return FacetValue(value.value, labels.get(value.value, value.label), value.count)


def _filter_text(name: str, value: str) -> str:
    value = value.replace('"', "*")  # a quotation mark cannot be written in a quoted value
    return f'{name}:"{value}"' if _NEEDS_QUOTES.search(value) or '"' in value else f"{name}:{value}"


def _joined(text: str, *filters: str) -> str:
    """Return a query with filters. An operator at its end would apply to the first of them."""
    return " ".join(filter(None, (_LAST_OPERATORS.sub("", text), *filters)))


def _date_label(name: str) -> str:
    day = date.fromisoformat(f"{name}-01-01"[:10])
    return {4: name, 7: f"{day:%b %Y}", 10: f"{day.day} {day:%b %Y}"}[len(name)]
