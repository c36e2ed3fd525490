"""A backup that the web app creates and verifies in a thread of its own, one at a time."""

import sys
from collections.abc import Callable
from threading import Event, Lock, Thread

from msgspec import Struct
from msgspec.structs import replace

from backscroll.errors import BackscrollError
from backscroll.history import History
from backscroll.model.safekeeping.backup import BackupProgress, BackupResult, BackupValidation

__all__ = ["BackupJob", "BackupState"]

JOIN_SECONDS = 5.0


class BackupState(Struct, frozen=True):
    """The running backup, or the result of the last one."""

    is_running: bool = True
    phase: str = "Starting"
    percent: int | None = None  # of the phase; None if it is not known
    result: BackupResult | None = None
    validation: BackupValidation | None = None
    error: str | None = None


class _CancelledError(Exception):
    """The server shuts down."""


class BackupJob:
    """Creates and verifies one backup at a time. The state can be read from any thread."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        self._open_history = open_history
        self._lock = Lock()
        self._is_cancelled = Event()
        self._thread: Thread | None = None
        self._state: BackupState | None = None

    @property
    def state(self) -> BackupState | None:
        """None before the first backup."""
        with self._lock:
            return self._state

    def start(self) -> bool:
        """Start a backup. Return False if one is running."""
        with self._lock:
            if self._state is not None and self._state.is_running:
                return False
            self._state = BackupState()
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        return True

    def close(self) -> None:
        """Cancel a running backup. Its incomplete file is deleted."""
        self._is_cancelled.set()
        if self._thread is not None:
            self._thread.join(timeout=JOIN_SECONDS)

    def _run(self) -> None:
        try:
            with self._open_history() as history:
                result = history.create_backup(progress=self._report)
                self._set(result=result, phase="Verifying", percent=None)
                validation = history.validate_backup(result.backup_path, self._report)
            self._set(is_running=False, validation=validation)
        except _CancelledError:
            self._set(is_running=False, error="Cancelled, because the server was stopped.")
        except BackscrollError as error:
            self._set(is_running=False, error=str(error))
        except Exception as error:  # noqa: BLE001 - without this, the page would show progress forever
            sys.stderr.write(f"backscroll serve: {type(error).__name__} while creating a backup\n")
            self._set(is_running=False, error=f"Internal error ({type(error).__name__}).")

    def _report(self, progress: BackupProgress) -> None:
        if self._is_cancelled.is_set():
            raise _CancelledError
        percent = min(100, 100 * progress.done // progress.total) if progress.total else None
        self._set(phase=progress.phase, percent=percent)

    def _set(self, **changes: object) -> None:
        with self._lock:
            self._state = replace(self._state or BackupState(), **changes)
