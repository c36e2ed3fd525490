"""Checks of arguments. Type hints are not checked at run time."""

from collections.abc import Collection
from os import PathLike
from typing import TYPE_CHECKING, Any, get_args

from backscroll import model, sources
from backscroll.errors import UsageError

if TYPE_CHECKING:
    from backscroll.model.session import Filter


AnyPath = str | PathLike[str]
_MAX_PAGE_SIZE = 1000
_MAX_OFFSET = 2**63 - 1  # of SQLite


def check_page(limit: int, offset: int) -> None:
    """Raise `UsageError` if the limit or the offset of a page is out of range."""
    if not 1 <= limit <= _MAX_PAGE_SIZE:
        raise UsageError(f"The limit must be between 1 and {_MAX_PAGE_SIZE}, not {limit}.")
    if not 0 <= offset <= _MAX_OFFSET:
        raise UsageError(f"The offset must be between 0 and {_MAX_OFFSET}, not {offset}.")


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise `UsageError` if a value is none of the choices: a collection or a `Literal`."""
    allowed = choices if isinstance(choices, Collection) else get_args(choices)
    if value not in allowed:
        raise UsageError(f"{value!r} is not a valid {name}. Use one of: {', '.join(allowed)}.")


def check_filter(filter: "Filter | None") -> "Filter":
    """Return the filter, or one without conditions. Raises `UsageError` for an unknown source."""
    if filter is None:
        return model.Filter()
    if filter.source is not None and filter.source not in sources.names():
        sources.named(filter.source)  # raises UsageError with the known names
    return filter
