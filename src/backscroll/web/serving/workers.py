"""Worker threads for requests.

Each thread has its own History, because an SQLite connection belongs to one thread. It stays open, so that
the caches of one request serve the next one.
"""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel

from backscroll.history import History

__all__ = ["OpenedHistory", "Workers"]

T = TypeVar("T")
MAX_THREADS = 4  # so that a slow page does not block the others; each has caches of about 80 MB
JOIN_SECONDS = 1.0


class _Job:
    """A function to run, and its result."""

    def __init__(self, work: Callable[[History], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_abandoned = False  # the client has gone
        self.done = anyio.Event()
        self.token = anyio.lowlevel.current_token()


class Workers:
    """Thread pool. Threads start on demand."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        self._open_history = open_history
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._pending_count = 0  # only used in the event loop

    async def run(self, work: Callable[[History], T]) -> T:
        """Run a function in a worker thread."""
        self._pending_count += 1
        if len(self._threads) < min(self._pending_count, MAX_THREADS):
            thread = Thread(target=self._serve, daemon=True)
            self._threads.append(thread)
            thread.start()
        job = _Job(work)
        self._jobs.put(job)
        try:
            await job.done.wait()
        finally:
            job.is_abandoned = True
            self._pending_count -= 1
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]  # the result of `work`

    def close(self) -> None:
        """Stop the threads after their current work. Wait at most a second for each."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=JOIN_SECONDS)

    def _serve(self) -> None:
        opened = OpenedHistory(self._open_history)
        while (job := self._jobs.get()) is not None:
            if job.is_abandoned:
                continue
            try:
                job.result = opened.run(job.work)
            except BaseException as error:  # raised where the result is awaited  # noqa: BLE001
                job.error = error
            with suppress(RuntimeError):  # the event loop may have ended
                anyio.from_thread.run_sync(job.done.set, token=job.token)
        opened.close()


class OpenedHistory:
    """The History of one thread. Opened again if the archive is replaced, and after an error."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        self._open_history = open_history
        self._history: History | None = None
        self._file_id: tuple[int, int] | None = None

    def run(self, work: Callable[[History], T]) -> T:
        """Run a function with the History."""
        history = self._history
        if history is not None and self._file_id != _file_id(history):
            self.close()  # another process has replaced the archive
            history = None
        if history is None:
            history = self._open_history()
        self._history = None
        with ExitStack() as on_error:
            on_error.push(history)  # closes the archive and raises a readable error
            result = work(history)
            on_error.pop_all()
        self._history, self._file_id = history, _file_id(history)
        return result

    def close(self) -> None:
        """Close the History."""
        if self._history is not None:
            self._history.close()
            self._history = None


def _file_id(history: History) -> tuple[int, int] | None:
    try:
        stat = history.archive_path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
