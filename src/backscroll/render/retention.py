"""Sessions that a tool is about to delete, as lines for terminals and pipes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backscroll.model.text import pluralize, sanitize

if TYPE_CHECKING:
    from backscroll.model import Retention

__all__ = ["retention_lines"]


def retention_lines(retention: "Retention") -> Iterator[str]:
    """Yield how many sessions a tool will delete soon, and the change of its settings that prevents it."""
    sessions = pluralize(len(retention.expiring), "session")
    set_by = "the tool's default" if retention.is_default else "from the tool's settings"
    limit = f"after {pluralize(retention.days, 'day')} without change ({set_by})"
    yield ""
    yield f"{sessions} will be deleted by the tool within 7 days, {limit}."
    if retention.trouble is not None:
        yield f"{sanitize(retention.settings)} {retention.trouble}; a limit set there is unknown."
        yield "The archive keeps these sessions."
        return
    yield "The archive keeps these sessions. To keep them in the tool as well:"
    yield ""
    yield from sanitize(retention.diff).splitlines()
