"""Thread of a server: sync once, then watch the tools' files and keep the archive up to date."""

import sys
import time
from collections.abc import Callable
from threading import Event, Thread

from backscroll.errors import BackscrollError
from backscroll.history.history import History
from backscroll.model.session import SessionChange
from backscroll.model.sync import SyncStatus

START_DELAY_SECONDS = 0.4  # lets the first calls run undisturbed
LONG_SYNC_SECONDS = 2.0  # after this, results mention that the sync is running
RETRY_SECONDS = 30.0  # after an error
JOIN_SECONDS = 2.0


def _ignore(*_: SessionChange) -> None:
    pass


class SyncThread:
    """Syncs once and then watches for changes. A long sync runs in another process.

    ``on_change`` is called in this thread with each changed session, ``on_sync`` after the first sync. Errors
    go to standard error, with the ``name`` of the server.
    """

    def __init__(
        self,
        open_history: Callable[[], History],
        name: str,
        on_change: Callable[[SessionChange], None] = _ignore,
        on_sync: Callable[[], None] = _ignore,
    ) -> None:
        self._open_history = open_history
        self._name = name
        self._on_change = on_change
        self._on_sync = on_sync
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._started_at: float | None = None  # until the first sync ends
        self._is_first = False  # the archive has never been complete
        self._percent: int | None = None
        self._remaining_seconds: float | None = None

    @property
    def is_incomplete(self) -> bool:
        """Whether results may be incomplete because the first sync is still running."""
        started_at = self._started_at
        return started_at is not None and (
            self._is_first or time.monotonic() - started_at > LONG_SYNC_SECONDS
        )

    @property
    def status(self) -> SyncStatus:
        """The progress of the first sync."""
        is_incomplete = self.is_incomplete
        return SyncStatus(
            is_complete=not is_incomplete,
            is_running=is_incomplete,
            percent=self._percent,
            remaining_seconds=self._remaining_seconds,
        )

    def start(self) -> None:
        self._is_first = not self._open_history().archive_path.exists()
        self._started_at = time.monotonic()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=JOIN_SECONDS)

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
                        self._remaining_seconds = status.remaining_seconds
                    if self._stop.is_set():
                        return
                    self._started_at = None
                    self._on_sync()
                    for change in history.live.watch(self._stop):
                        self._on_change(change)
            except (BackscrollError, OSError) as error:
                self._started_at = None
                sys.stderr.write(f"{self._name}: {error}\n")
            wait = RETRY_SECONDS
