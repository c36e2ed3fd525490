"""Background sync of the MCP server. Tool calls never wait for it. A long sync runs in another process."""

import sys
import time
from collections.abc import Callable
from threading import Event, Thread

from backscroll.errors import BackscrollError
from backscroll.history import History

__all__ = ["LONGEST_NOTE", "BackgroundSync"]

START_DELAY_SECONDS = 0.4  # lets the first calls run undisturbed
LONG_SYNC_SECONDS = 2.0  # after this, results mention that the sync is running
RETRY_SECONDS = 30.0  # after an error
_NOTE = "The first sync is still running{done}. Results may be incomplete."
LONGEST_NOTE = _NOTE.format(done=", 100 % done")


class BackgroundSync:
    """Thread that syncs once and then watches for changes."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        self._open_history = open_history
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._started_at: float | None = None  # until the first sync ends
        self._is_first = False  # the archive has never been complete
        self._percent: int | None = None

    @property
    def is_incomplete(self) -> bool:
        """Whether results may be incomplete because the first sync is still running."""
        started_at = self._started_at
        return started_at is not None and (
            self._is_first or time.monotonic() - started_at > LONG_SYNC_SECONDS
        )

    @property
    def note(self) -> str | None:
        """A sentence for the model while results are incomplete; None otherwise."""
        if not self.is_incomplete:
            return None
        done = f", {self._percent} % done" if self._percent is not None else ""
        return _NOTE.format(done=done)

    def start(self) -> None:
        self._is_first = not self._open_history().archive_path.exists()
        self._started_at = time.monotonic()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)

    def _report_progress(self, done: int, total: int) -> None:
        self._percent = 100 * done // total if total else None

    def _run(self) -> None:
        wait = START_DELAY_SECONDS
        while not self._stop.wait(wait):
            try:
                with self._open_history() as history:
                    self._is_first = not history.is_complete
                    for status in history.background_sync.follow(self._stop, self._report_progress):
                        self._percent = status.percent
                    if self._stop.is_set():
                        return
                    self._started_at = None
                    for _ in history.live.watch(self._stop):
                        pass
            except (BackscrollError, OSError) as error:
                self._started_at = None
                sys.stderr.write(f"backscroll mcp: {error}\n")
            wait = RETRY_SECONDS
