"""The state of the session list: filters, order and page, read from and written to a URL."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, structs

from backscroll.errors import UsageError
from backscroll.model import Filter
from backscroll.model.dates import parse_date_range
from backscroll.model.session import SORT_KEYS, SortKey
from backscroll.web.urls import parse_page, with_query

__all__ = ["PAGE_SIZE", "SORT_LABELS", "SessionQuery"]

PAGE_SIZE = 50
SORT_LABELS: dict[SortKey, str] = {
    "updated": "Last active",
    "created": "Started",
    "title": "Title",
    "workspace": "Workspace",
    "messages": "Messages",
    "prompts": "Prompts",
    "tokens": "Tokens",
    "lines": "Changed lines",
}
_MAX_VALUE_CHARS = 1000
_MAX_PAGE = 1_000_000


class SessionQuery(Struct, frozen=True, kw_only=True):
    """Filters, order and page of the session list, as in its URL."""

    title: str = ""
    source: str = ""
    workspace: str = ""
    since: str = ""
    until: str = ""
    branch: str = ""
    model: str = ""
    tag: str = ""
    edits: bool = False
    gone: bool = False
    starred: bool = False
    sort: SortKey = "updated"
    page: int = 1

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> "SessionQuery":
        """Read the query of a URL. Unknown names are ignored. Raises `UsageError` for an invalid value."""
        texts = ("title", "source", "workspace", "since", "until", "branch", "model", "tag")
        flags = ("edits", "gone", "starred")
        given: dict[str, Any] = {name: values.get(name, "")[:_MAX_VALUE_CHARS].strip() for name in texts}
        given |= {name: values.get(name, "") not in ("", "0") for name in flags}
        sort, page = values.get("sort", "updated"), values.get("page", "1")
        if sort not in SORT_KEYS:
            raise UsageError(f"{sort!r} is not an order. Use one of: {', '.join(SORT_KEYS)}.")
        return cls(**given, sort=sort, page=parse_page(page, _MAX_PAGE))

    def filter(self, now: datetime | None = None) -> Filter:
        """Return the filter. Raises `UsageError` if a date is not valid."""
        now = now or datetime.now(UTC)
        since, until = _date_range(self.since, now), _date_range(self.until, now)
        return Filter(
            title=self.title or None,
            source=self.source or None,
            workspace=self.workspace or None,
            since=since[0] if since is not None else None,
            until=until[1] if until is not None else None,
            branch=self.branch or None,
            model=self.model or None,
            tags=(self.tag.lstrip("#").lower(),) if self.tag else (),
            has_edits=self.edits,
            is_gone=True if self.gone else None,
            is_starred=self.starred,
        )

    @property
    def offset(self) -> int:
        return (self.page - 1) * PAGE_SIZE

    def url(self, **changes: Any) -> str:
        """Return the URL of this state with some values changed. A change of a filter leads to page 1."""
        changed = structs.replace(self, **{"page": 1, **changes})
        query = {
            name: value
            for name, value in structs.asdict(changed).items()
            if value != getattr(SessionQuery(), name)
        }
        return with_query("/sessions", {name: 1 if value is True else value for name, value in query.items()})

    @property
    def active(self) -> list[tuple[str, str, str]]:
        """The active filters: label, value and the URL without each."""
        labels = {
            "title": "Title",
            "source": "Source",
            "workspace": "Workspace",
            "since": "Since",
            "until": "Until",
            "branch": "Branch",
            "model": "Model",
            "tag": "Tag",
        }
        flags = {"edits": "With edits", "gone": "Deleted by the tool", "starred": "Starred"}
        found = [
            (label, str(getattr(self, name)), self.url(**{name: ""}))
            for name, label in labels.items()
            if getattr(self, name)
        ]
        return found + [
            (label, "", self.url(**{name: False})) for name, label in flags.items() if getattr(self, name)
        ]


def _date_range(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    if not text:
        return None
    found = parse_date_range(text, now)
    if found is None:
        raise UsageError(f"{text!r} is not a date. Use 2026-10-03, 2026-10, yesterday or 7d.")
    return found
