"""The first page of a long sync: the newest units, which are read before the worker processes start."""

from collections.abc import Iterable

from backscroll.ingest.changes import ChangedUnit, newest_first

__all__ = ["first_page"]

FIRST_PAGE_SESSIONS = 20  # read before the workers start, which takes half a second
FIRST_PAGE_BYTES = 8 * 1024 * 1024


def first_page(changed: Iterable[ChangedUnit]) -> list[ChangedUnit]:
    """Return the newest units: enough for the first page of a list, and read in a fraction of a second."""
    found: list[ChangedUnit] = []
    size = session_count = 0
    for change in newest_first(changed):
        if size >= FIRST_PAGE_BYTES or session_count >= FIRST_PAGE_SESSIONS:
            break
        if change.unit.estimated_bytes > FIRST_PAGE_BYTES:
            continue
        found.append(change)
        size += change.unit.estimated_bytes
        session_count += change.unit.kind == "session"
    return found
