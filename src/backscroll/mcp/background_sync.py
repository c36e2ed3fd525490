"""Background sync of the MCP server. Tool calls never wait for it."""

from collections.abc import Callable

from backscroll.history import History
from backscroll.history.background.sync_thread import SyncThread

__all__ = ["LONGEST_NOTE", "BackgroundSync"]

_NOTE = "The first sync is still running{done}. Results may be incomplete."
LONGEST_NOTE = _NOTE.format(done=", 100 % done")


class BackgroundSync(SyncThread):
    """Sync thread with a note for the model."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        super().__init__(open_history, "backscroll mcp")

    @property
    def note(self) -> str | None:
        """A sentence for the model while results are incomplete; None otherwise."""
        status = self.status
        if status.is_complete:
            return None
        done = f", {status.percent} % done" if status.percent is not None else ""
        return _NOTE.format(done=done)
