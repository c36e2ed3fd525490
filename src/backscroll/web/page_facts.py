"""Facts that every page shows, besides its content."""

from typing import NamedTuple

from starlette.requests import Request

from backscroll.model.sync import SyncStatus
from backscroll.web.serving.served_history import served_history

__all__ = ["PageFacts", "page_facts"]


class PageFacts(NamedTuple):
    """State of the server when a request arrived."""

    sync: SyncStatus
    is_demo: bool
    can_write: bool  # the browser has the token
    revision: str


def page_facts(request: Request) -> PageFacts:
    """Return the facts for a request. They are determined once, before the history is read."""
    known: PageFacts | None = getattr(request.state, "facts", None)
    if known is None:
        served = served_history(request)
        can_write = request.app.state.can_write(request)
        known = PageFacts(served.sync_status(), served.is_demo, can_write, served.feed.revision)
        request.state.facts = known
    return known
