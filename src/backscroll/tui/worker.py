"""Background threads of the UI.

An archive connection belongs to the thread that opened it. Each kind of work that must not wait for
another kind has its own worker.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

from backscroll.history import History

__all__ = ["HistoryWorker", "OpenHistory"]

OpenHistory = Callable[[], History]
T = TypeVar("T")


class HistoryWorker:
    """One thread with its own `History`. Runs jobs in order; starts with the first job."""

    def __init__(self, name: str, open_history: OpenHistory) -> None:
        self._open_history = open_history
        self._history: History | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    def submit(self, work: Callable[[History], T], on_done: Callable[[Future[T]], object]) -> None:
        """Run `work` after all earlier jobs, then call `on_done` with its future.

        `on_done` runs on the same thread, so it follows every message that `work` has posted.
        """
        self._thread.submit(on_done, self._thread.submit(self._run, work))

    def close(self) -> Future[None]:
        """Close the history after all submitted jobs."""
        closed = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        return closed

    def _run(self, work: Callable[[History], T]) -> T:
        if self._history is None:
            self._history = self._open_history()
        with ExitStack() as on_error:
            on_error.push(self._history)  # closes the archive and raises a readable error
            result = work(self._history)
            on_error.pop_all()
            return result

    def _close(self) -> None:
        if self._history is not None:
            self._history.close()
