"""Addresses of pages, and what pages read from the query of their address: filters, kind of search, page."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode

from msgspec import Struct, structs

from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.filters import FILTERS, make_filter
from backscroll.model.session import SORT_KEYS, Filter, SortKey

# Refs of nearly all sessions and subagents. Others are encoded.
_PLAIN_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*(/[A-Za-z0-9_.-]+)?")


def session_url(ref: str, part: str = "", **query: object) -> str:
    """Return the address of a session, or of a part of it such as ``export``."""
    if _PLAIN_REF.fullmatch(ref):
        ref = ref.replace("/", "+")  # between a session and a subagent
    else:
        ref = "~" + urlsafe_b64encode(ref.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    return with_query(f"/sessions/{ref}{'/' if part else ''}{part}", query)


def message_url(ref: str, position: int) -> str:
    """Return the address of a message in its session."""
    return f"{session_url(ref, at=position)}#m{position}"


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Return a path with the values that are not empty as its query."""
    given = [(name, value) for name, value in query.items() if value or (value == 0 and value is not False)]
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def decode_ref(text: str) -> str:
    """Return the ref in an address. Raises `SessionNotFoundError` if it is not valid."""
    if not text.startswith("~"):
        return text.replace("+", "/")
    try:
        encoded = text[1:].encode("ascii")
        return urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)).decode("utf-8", "surrogatepass")
    except ValueError as error:
        raise SessionNotFoundError(f"No session matches {text!r}.", text) from error


def parse_page(text: str, max_page: int) -> int:
    """Return the page number in an address. Raises `UsageError` if it is not between 1 and ``max_page``."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(max_page))
    if not is_number or not 1 <= int(text) <= max_page:
        raise UsageError(f"{text[:40]!r} is not a page. Use a number from 1.")
    return int(text)


Mode = Literal["words", "exact", "regex"]
MODE_LABELS: dict[Mode, str] = {"words": "Words", "exact": "Exact text", "regex": "Regular expression"}
MAX_QUERY_CHARS = 1000


def parse_mode(text: str) -> Mode:
    """Return the kind of search with this name, words for an empty one. Raises `UsageError` for another."""
    for mode in MODE_LABELS:
        if mode == (text or "words"):
            return mode
    raise UsageError(f"{text!r} is not a kind of search. Use one of: {', '.join(MODE_LABELS)}.")


def length_problem(*texts: str) -> str:
    """Return why a query is too long, empty if it is not."""
    if all(len(text) <= MAX_QUERY_CHARS for text in texts):
        return ""
    return f"The query has more than {MAX_QUERY_CHARS:,} characters. Search for a part of it."


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
_DEFAULTS = (("sort", "updated"), ("page", 1))  # not in a URL

# The filters of the list, by their names in the URL.
LIST_FILTERS = {each.name.removeprefix("has_"): each for each in FILTERS}


class SessionQuery(Struct, frozen=True, kw_only=True):
    """Filters, order and page of the session list, as in its URL."""

    filters: dict[str, str] = {}  # those that are set, by name: words of the title and `LIST_FILTERS`
    sort: SortKey = "updated"
    page: int = 1

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> "SessionQuery":
        """Read the query of a URL. Unknown names are ignored. Raises `UsageError` for an invalid value."""
        filters = {name: values.get(name, "")[:_MAX_VALUE_CHARS].strip() for name in ("title", *LIST_FILTERS)}
        flags = [name for name, each in LIST_FILTERS.items() if each.kind == "flag"]
        filters |= {name: "" if filters[name] in ("", "0") else "1" for name in flags}
        sort, page = values.get("sort", "updated"), values.get("page", "1")
        if sort not in SORT_KEYS:
            raise UsageError(f"{sort!r} is not an order. Use one of: {', '.join(SORT_KEYS)}.")
        return cls(
            filters={name: value for name, value in filters.items() if value},
            sort=sort,
            page=parse_page(page, _MAX_PAGE),
        )

    def filter(self) -> Filter:
        """Return the filter. Raises `UsageError` if a date is not valid."""
        values = {each.name: self.filters.get(name) for name, each in LIST_FILTERS.items()}
        return structs.replace(make_filter(values), title=self.filters.get("title"))

    @property
    def offset(self) -> int:
        return (self.page - 1) * PAGE_SIZE

    def url(self, **changes: Any) -> str:
        """Return the URL of this state with some values changed. A change of a filter leads to page 1."""
        state = {**dict.fromkeys(("title", *LIST_FILTERS)), **self.filters, "sort": self.sort, **changes}
        return with_query("/sessions", {each[0]: each[1] for each in state.items() if each not in _DEFAULTS})

    def hidden(self, *names: str) -> list[tuple[str, str]]:
        """Return the names and values that a form keeps which changes the filters with these names."""
        kept = [(name, value) for name, value in self.filters.items() if name not in names]
        return kept + ([("sort", self.sort)] if self.sort != "updated" else [])

    @property
    def active(self) -> list[tuple[str, str, str]]:
        """The active filters: label, value and the URL without each."""
        found = [("title", "Title", False)]
        found += [(name, each.label, each.kind == "flag") for name, each in LIST_FILTERS.items()]
        return [
            (label, "" if is_flag else self.filters[name], self.url(**{name: ""}))
            for name, label, is_flag in found
            if name in self.filters
        ]
