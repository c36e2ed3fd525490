"""Limits of a page of results."""

from backscroll.errors import UsageError

__all__ = ["check_page"]

_MAX_PAGE_SIZE = 1000
_MAX_OFFSET = 2**63 - 1  # of SQLite


def check_page(limit: int, offset: int) -> None:
    """Raise `UsageError` if the limit or the offset of a page is out of range."""
    if not 1 <= limit <= _MAX_PAGE_SIZE:
        raise UsageError(f"The limit must be between 1 and {_MAX_PAGE_SIZE}, not {limit}.")
    if not 0 <= offset <= _MAX_OFFSET:
        raise UsageError(f"The offset must be between 0 and {_MAX_OFFSET}, not {offset}.")
