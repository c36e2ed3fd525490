"""Hand a long sync over to a background process, and answer from what is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import backscroll
from backscroll.archive.sync_state import ProgressFile, is_locked
from backscroll.config import named_roots, this_machine
from backscroll.errors import BackscrollError
from backscroll.ingest.sync import sync
from backscroll.model.sync import SyncStatus
from backscroll.stores.stores import Stores

MAX_FOREGROUND_BYTES = 32 * 1024 * 1024  # about half a second; more is read by a background process
WAIT_SECONDS = 1.0
PARTIAL_PAGE_SECONDS = 1.2  # then a list shows fewer sessions than wanted
MAX_WAIT_SECONDS = 2.5  # if no session is ready yet, or too few to search
STOP_TIMEOUT_SECONDS = 10.0
MAX_LOG_BYTES = 64 * 1024
POLL_SECONDS = 0.02
FOLLOW_SECONDS = 0.1
# Of the background process.
NORMAL_PRIORITY_SECONDS = 3.0
NICENESS = 10
_IOPRIO_SET_SYSCALLS = {"x86_64": 251, "aarch64": 30}
_IOPRIO_WHO_PROCESS = 1
_LOWEST_BEST_EFFORT = (2 << 13) | 7  # class "best effort", level 7

# The process starts in another folder, where a relative path in PYTHONPATH would not lead to this package.
_WORKER_CODE = (
    f"import sys; folder = {str(Path(backscroll.__file__).absolute().parents[1])!r};"
    " folder in sys.path or sys.path.insert(0, folder);"
    " from backscroll.ingest.background_sync import run_worker; sys.exit(run_worker())"
)

# If the process is stopped, the resource tracker of multiprocessing frees its semaphores and would log that.
_WARNING_FILTER = "ignore:resource_tracker:UserWarning:multiprocessing.resource_tracker"

Progress = Callable[[int, int], None]


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class BackgroundSync:
    """The background process of one archive. The sync lock ensures that there is only one."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._process: subprocess.Popen[bytes] | None = None

    def refresh(
        self, progress: Progress | None = None, *, wanted_sessions: int = 0, for_search: bool = False
    ) -> SyncStatus:
        """Sync for at most about a second. If more is left, a background process continues.

        Waits a little longer while fewer than ``wanted_sessions`` can be listed or, ``for_search``, searched.
        """
        if self._stores.archive.sync_state.is_complete:
            report = sync(self._stores, progress, wait=False, max_bytes=MAX_FOREGROUND_BYTES)
            if report is None or not report.is_deferred:
                return self.status()
        if not self.start():
            sync(self._stores, progress)
            return self.status()
        try:
            return self._wait(progress, wanted_sessions, for_search=for_search)
        finally:
            self._detach()

    def follow(self, stop: Event, progress: Progress | None = None) -> Iterator[SyncStatus]:
        """Sync, and yield the status of a long sync until it ends or ``stop`` is set.

        A long sync runs in a background process, which ``stop`` does not end. A short one runs here, and only
        ``progress`` reports on it.
        """
        if self._stores.archive.sync_state.is_complete:
            report = sync(self._stores, progress, wait=False, max_bytes=MAX_FOREGROUND_BYTES)
            if report is not None and not report.is_deferred:
                return
        if not self.start():
            sync(self._stores, progress)
            return
        try:
            while self._is_running() and not stop.is_set():
                yield self.status()
                stop.wait(FOLLOW_SECONDS)
            has_failed = self._process is not None and (self._process.poll() or 0) > 0
        finally:
            self._detach()
        if has_failed and not stop.is_set():
            sync(self._stores, progress)  # reports the error here

    def start(self) -> bool:
        """Start the process, unless a sync is running. Return False if it cannot be started."""
        if is_locked(self._stores.archive_path):
            return True
        stores = self._stores
        home = stores.archive_path.parent
        roots = [f"{source.name}={path}" for source, path in stores.roots()]
        command = [sys.executable, "-W", _WARNING_FILTER, "-c", _WORKER_CODE, str(home), *roots]
        options: dict[str, object] = {"start_new_session": True}
        if sys.platform == "win32":
            flags = subprocess.DETACHED_PROCESS | subprocess.BELOW_NORMAL_PRIORITY_CLASS
            options = {"creationflags": flags}
        try:
            log_file = home / "sync.log"
            if log_file.exists() and log_file.stat().st_size > MAX_LOG_BYTES:
                log_file.unlink()
            with open(log_file, "ab", opener=_open_private) as log:
                self._process = subprocess.Popen(  # type: ignore[call-overload]
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    cwd=home,
                    **options,
                )
        except OSError:
            return False
        return True

    def status(self) -> SyncStatus:
        """Return how far the sync is."""
        is_complete = self._stores.archive.sync_state.is_complete
        is_running = self._is_running()
        progress = ProgressFile(self._stores.archive_path).read() if is_running else None
        return SyncStatus(
            is_complete=is_complete,
            is_running=is_running,
            percent=progress.percent if progress is not None else None,
            remaining_seconds=progress.remaining_seconds if progress is not None else None,
        )

    def stop(self) -> bool:
        """End the background process. What it has read stays. Return False if none is running.

        A sync of another command is not stopped.
        """
        archive = self._stores.archive_path
        file = ProgressFile(archive)
        progress = file.read()
        if progress is None or not progress.is_background or not is_locked(archive):
            return False
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        with suppress(ProcessLookupError):
            os.kill(progress.pid, signal.SIGTERM)
        while is_locked(archive) and ((now := file.read()) is None or now.pid == progress.pid):
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        file.delete_of(progress.pid)
        if self._process is not None and self._process.pid == progress.pid:
            self._process.wait()  # it has released the lock, so it is about to exit
        return True

    def _wait(self, progress: Progress | None, wanted_sessions: int, *, for_search: bool) -> SyncStatus:
        started = time.monotonic()
        file = ProgressFile(self._stores.archive_path)
        state = self._stores.archive.sync_state
        while (elapsed := time.monotonic() - started) < MAX_WAIT_SECONDS:
            if state.is_complete or not self._is_running():
                break
            ready = state.searchable_session_count if for_search else state.session_count
            is_partial = not for_search and elapsed >= PARTIAL_PAGE_SECONDS
            if elapsed >= WAIT_SECONDS and ready >= (
                min(1, wanted_sessions) if is_partial else wanted_sessions
            ):
                break
            if progress is not None and (now := file.read()) is not None and now.total:
                progress(now.done, now.total)
            time.sleep(POLL_SECONDS)
        if not state.is_complete and not self._is_running():
            sync(self._stores, progress)  # the process failed: report its error here
        return self.status()

    def _detach(self) -> None:
        """Let the process outlive this one. Without a return code, Popen would emit a ResourceWarning."""
        if self._process is not None and self._process.poll() is None:
            self._process.returncode = 0
        self._process = None

    def _is_running(self) -> bool:
        return (self._process is not None and self._process.poll() is None) or is_locked(
            self._stores.archive_path
        )


def run_worker() -> int:
    """Run in the background process: sync the archive ``sys.argv[1]`` from the roots in the other arguments.

    It logs to ``sync.log`` in the archive's folder and can be killed at any time. Its priority is low, except
    in the first seconds: a command waits for the newest sessions.
    """
    home, *roots = sys.argv[1:]
    machine = this_machine()
    stores = Stores(named_roots(roots, machine), Path(home), machine)
    _log("started")
    try:
        report = sync(stores, _Priority().step, is_background=True)
    except (BackscrollError, OSError) as error:
        _log(f"failed: {error}")
        return 1
    finally:
        stores.close()
    assert report is not None
    _log(f"complete; units read: {report.changed:,}")
    return 0


def _log(message: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {os.getpid()} {message}\n")
    sys.stderr.flush()


class _Priority:
    """Lowers the priority of this process and of its workers after the first seconds."""

    def __init__(self) -> None:
        self._normal_until = time.monotonic() + NORMAL_PRIORITY_SECONDS
        self._is_low = False

    def step(self, done: int, total: int) -> None:
        if self._is_low or time.monotonic() < self._normal_until:
            return
        self._is_low = True
        from multiprocessing import active_children  # start-up: only this process needs it

        for pid in (0, *(child.pid for child in active_children() if child.pid is not None)):
            _lower_priority(pid)


def _lower_priority(pid: int) -> None:
    import ctypes  # start-up, as above
    import platform

    with suppress(OSError, AttributeError):  # not on Windows, where the process starts with a low priority
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
    number = _IOPRIO_SET_SYSCALLS.get(platform.machine()) if sys.platform == "linux" else None
    if number is not None:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(number, _IOPRIO_WHO_PROCESS, pid, _LOWEST_BEST_EFFORT)
