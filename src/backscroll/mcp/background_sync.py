"""The archive kept up to date behind the answers, which never wait for it."""

import sys
import time
from collections.abc import Callable
from threading import Event, Thread

from backscroll.errors import BackscrollError
from backscroll.history import History

__all__ = ["Upkeep"]

_BREATH = 0.4  # seconds in which the first answers are given undisturbed
_LONG = 2.0  # seconds that a first sync takes when there is something to say about it
_TURN = 1.0  # seconds after which it is asked again whether another process has read everything
_AGAIN = 30.0  # seconds after which what did not work is tried again


class Upkeep:
    """Reads what changed, then watches, in a thread of its own."""

    def __init__(self, make: Callable[[], History]) -> None:
        self._make = make
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._began: float | None = None  # when the first sync began, until it has ended
        self._is_first = False  # whether there was no archive before

    @property
    def is_reading(self) -> bool:
        """Whether there is so much to read that there may soon be more than the archive holds."""
        began = self._began
        return began is not None and (self._is_first or time.monotonic() - began > _LONG)

    def start(self) -> None:
        self._is_first = not self._make().archive_path.exists()
        self._began = time.monotonic()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)

    def _run(self) -> None:
        wait = _BREATH
        while not self._stop.wait(wait):
            try:
                with self._make() as history:
                    while history.sync(wait=False) is None:
                        if self._stop.wait(_TURN):
                            return
                    self._began = None
                    for _ in history.live.watch(self._stop):
                        pass
            except (BackscrollError, OSError) as error:
                self._began = None
                sys.stderr.write(f"backscroll mcp: {error}\n")
            wait = _AGAIN
