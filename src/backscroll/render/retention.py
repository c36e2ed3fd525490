"""What a tool is about to delete, as lines that are safe for any terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backscroll.model.sanitize import sanitize

if TYPE_CHECKING:
    from backscroll.model import Retention

__all__ = ["retention_lines"]


def retention_lines(retention: Retention) -> Iterator[str]:
    """What a tool is about to delete, and the change that would keep it from doing so."""
    number = len(retention.expiring)
    sessions = "1 session" if number == 1 else f"{number:,} sessions"
    set_by = "which is its default" if retention.is_default else "as its settings say"
    yield ""
    yield f"{sessions} the tool itself will delete within 7 days: after {retention.days} days without change,"
    if retention.trouble is not None:
        yield f"{set_by}; {sanitize(retention.settings)}"
        yield f"{retention.trouble}, so that another number there is not seen. All are kept here."
        return
    yield f"{set_by}. All are kept here. To keep them there as well:"
    yield ""
    yield from sanitize(retention.diff).splitlines()
