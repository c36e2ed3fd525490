"""Model of the session list: filter and order without a search."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, get_args

from msgspec import Struct

from backscroll.model import SessionSummary

__all__ = ["ORDERS", "Choice", "ListFilter", "Order", "SessionListModel"]

Order = Literal["newest", "oldest", "longest", "tokens", "title"]
ORDERS: tuple[Order, ...] = get_args(Order)
_MIN_TIME = datetime.min.replace(tzinfo=UTC)


class ListFilter(Struct, frozen=True):
    """Conditions that the listed sessions meet."""

    source: str | None = None
    workspace: str | None = None  # path
    is_starred: bool = False
    text: str = ""  # words that the session's metadata contains

    @property
    def label(self) -> str:
        """The conditions for the status line, without `text`."""
        parts = [self.source, _folder_name(self.workspace) if self.workspace else None]
        return " · ".join([part for part in parts if part] + (["★"] if self.is_starred else []))

    @property
    def search_filters(self) -> dict[str, str]:
        """The conditions as search filters, without `text`."""
        filters = {"source": self.source, "workspace": self.workspace}
        filters["is"] = "starred" if self.is_starred else None
        return {name: value for name, value in filters.items() if value is not None}


class Choice(Struct, frozen=True):
    """A value to filter by, and the number of sessions that have it."""

    name: str
    value: str
    session_count: int


class SessionListModel:
    """All sessions, newest first."""

    def __init__(self) -> None:
        self.summaries: Sequence[SessionSummary] = ()
        self._searchable_texts: list[str] | None = None
        self._by_ref: dict[str, SessionSummary] | None = None

    def replace_all(self, summaries: Sequence[SessionSummary]) -> None:
        """Replace all sessions. `summaries` must be sorted, newest first."""
        self.summaries = summaries
        self._searchable_texts = self._by_ref = None

    def find(self, ref: str) -> SessionSummary | None:
        """Return the session with this ref."""
        if self._by_ref is None:
            self._by_ref = {summary.ref: summary for summary in self.summaries}
        return self._by_ref.get(ref)

    def update(self, summary: SessionSummary) -> None:
        """Insert a session at its time. Replace the session with the same ref, if any."""
        known = self.find(summary.ref)
        if known is not None and known.updated_at == summary.updated_at:
            self.replace_all([summary if one.ref == summary.ref else one for one in self.summaries])
            return
        others = [one for one in self.summaries if one.ref != summary.ref]
        time = summary.updated_at or _MIN_TIME
        index = next(
            (n for n, one in enumerate(others) if (one.updated_at or _MIN_TIME) <= time), len(others)
        )
        self.replace_all([*others[:index], summary, *others[index:]])

    def select(self, list_filter: ListFilter, order: Order) -> list[SessionSummary]:
        """Return the sessions that match the filter, in this order."""
        candidates: Iterable[SessionSummary] = self.summaries
        if words := list_filter.text.casefold().split():
            if self._searchable_texts is None:
                self._searchable_texts = list(map(_searchable_text, self.summaries))
            pairs = zip(self.summaries, self._searchable_texts, strict=True)
            candidates = (one for one, text in pairs if all(word in text for word in words))
        selected = [
            one
            for one in candidates
            if (list_filter.source is None or one.source == list_filter.source)
            and (list_filter.workspace is None or one.workspace_path == list_filter.workspace)
            and (one.is_starred or not list_filter.is_starred)
        ]
        return _sort(selected, order)

    def source_choices(self) -> list[Choice]:
        """Return the sources of all sessions, the one with most sessions first."""
        counts = Counter(summary.source for summary in self.summaries)
        return [Choice(name, name, count) for name, count in counts.most_common()]

    def workspace_choices(self) -> list[Choice]:
        """Return the workspaces of all sessions, the most recently used first."""
        counts = Counter(summary.workspace_path for summary in self.summaries if summary.workspace_path)
        return [Choice(_folder_name(path) or path, path, count) for path, count in counts.items()]


def _folder_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _searchable_text(summary: SessionSummary) -> str:
    parts = (
        summary.title, summary.original_title, summary.workspace_path, summary.workspace_name,
        summary.git_branch, summary.ref, summary.first_message_preview,
        *(f"#{tag}" for tag in summary.tags), *summary.models,
    )  # fmt: skip
    return "\n".join(part for part in parts if part).casefold()


def _sort(summaries: list[SessionSummary], order: Order) -> list[SessionSummary]:
    match order:
        case "newest":
            return summaries
        case "oldest":
            return summaries[::-1]
        case "longest":
            return sorted(summaries, key=lambda one: -one.message_count)
        case "tokens":
            return sorted(summaries, key=lambda one: -(one.total_tokens or 0))
        case "title":
            return sorted(summaries, key=lambda one: (not one.title, (one.title or "").casefold()))
