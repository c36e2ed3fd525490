"""Work beside the screen: a thread with a history of its own.

What the archive is read through stays with the thread that opened it, so there is
a desk for each kind of work that must not wait for another.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

from backscroll.history import History

__all__ = ["Desk", "Open"]

Open = Callable[[], History]
T = TypeVar("T")


class Desk:
    """Does one thing after the other. The thread is started with the first."""

    def __init__(self, name: str, open_history: Open) -> None:
        self._open = open_history
        self._history: History | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    def ask(self, work: Callable[[History], T], tell: Callable[[Future[T]], object]) -> None:
        """Have something done, after all that was asked for before.

        Its answer is told by the desk, and so never before what the work itself has told on the way.
        """
        self._thread.submit(tell, self._thread.submit(self._do, work))

    def close(self) -> Future[None]:
        """Close the archive, after all that was asked for."""
        closed = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        return closed

    def _do(self, work: Callable[[History], T]) -> T:
        if self._history is None:
            self._history = self._open()
        with ExitStack() as trouble:
            trouble.push(self._history)  # closes the archive and says in a sentence what went wrong
            done = work(self._history)
            trouble.pop_all()
            return done

    def _close(self) -> None:
        if self._history is not None:
            self._history.close()
