"""What the figures of the home page show, read from and written to a URL."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from backscroll.errors import UsageError
from backscroll.model.session import SortKey
from backscroll.model.statistics import By, SeriesGroup
from backscroll.web.urls import with_query

__all__ = ["METRICS", "RANGES", "STACKS", "TOPS", "FigureQuery"]

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
