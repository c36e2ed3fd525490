"""Work that goes on in a thread of its own while whoever began it does something else."""

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

__all__ = ["BackgroundTask"]

T = TypeVar("T")


class BackgroundTask(Generic[T]):
    """Work that has been begun. It gains time where the work leaves the interpreter to others."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def result(self) -> T:
        """What came of it, as soon as it is done. Raises what the work raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _run(self) -> None:
        try:
            self._result.append(self._work())
        except BaseException as error:  # whatever it is, whoever waits is told  # noqa: BLE001
            self._error = error
