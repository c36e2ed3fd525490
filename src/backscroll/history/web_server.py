"""One web server per archive: a lock, and a file with the address for other processes."""

import os
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from backscroll.readers.file_lock import try_lock

if TYPE_CHECKING:  # start-up: `sync` loads this module
    import sqlite3

    from backscroll.history.history import History

_LOCK_NAME = "web.lock"  # next to the archive; locked by its server
_RECORD_NAME = "web.json"  # next to the archive while the web app serves it
_START_TIMEOUT_SECONDS = 5.0  # of another process that has the lock and is not listening yet
_POLL_SECONDS = 0.05


class RunningServer(NamedTuple):
    """A server that is running for the same archive."""

    address: str  # "http://127.0.0.1:7433"
    token: str
    pid: int


class ServerClaim:
    """The claim of this process to serve an archive. Released on exit, also if the process is killed.

    An archive in a folder without write permission can be served by several processes.
    """

    def __init__(self, history: "History") -> None:
        self._lock_path = history.archive_path.with_name(_LOCK_NAME)
        self._record_path: Path | None = history.archive_path.with_name(_RECORD_NAME)
        self._lock: sqlite3.Connection | None = None
        self.is_held = True
        try:
            self._lock_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._try_lock()
        except OSError:
            self._record_path = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            if self._record_path is not None:
                self._record_path.unlink(missing_ok=True)
            self._lock.close()

    def publish(self, address: str, token: str) -> None:
        """Write address and token to a file that only the user may read."""
        if self._lock is None or self._record_path is None:
            return
        import json  # start-up

        record = {"address": address, "token": token, "pid": os.getpid()}
        _write_private(self._record_path, json.dumps(record))

    def running_server(self) -> RunningServer | None:
        """Return the server of another process. Wait a little if it has just started.

        None if the lock is free by now: `is_served` holds it for a moment, to remove a stale record.
        """
        import json  # start-up

        end = time.monotonic() + _START_TIMEOUT_SECONDS
        while self._record_path is not None:
            if self._try_lock():
                return None
            try:
                record = json.loads(self._record_path.read_text(encoding="utf-8"))
                return RunningServer(str(record["address"]), str(record["token"]), int(record["pid"]))
            except (OSError, ValueError, KeyError, TypeError):
                if time.monotonic() > end:
                    return None
                time.sleep(_POLL_SECONDS)
        return None

    def _try_lock(self) -> bool:
        self._lock = try_lock(self._lock_path)
        self.is_held = self._lock is not None
        return self.is_held


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # an existing file may have other permissions
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def is_served(archive_path: Path) -> bool:
    """Return whether a web server runs for an archive. The record of a killed server is removed.

    Only the lock shows that a server runs: the process id of a killed server may be in use again.
    """
    record_path = archive_path.with_name(_RECORD_NAME)
    if not record_path.exists():
        return False
    try:
        lock = try_lock(archive_path.with_name(_LOCK_NAME))
        if lock is None:
            return True
        try:
            record_path.unlink(missing_ok=True)
        finally:
            lock.close()
    except OSError:
        pass  # without write permission, there was no server with a record
    return False
