"""Cache of results that are expensive to compute, for all threads of a server."""

from collections.abc import Callable, Hashable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Generic, TypeVar

from backscroll.history import History

__all__ = ["ResultCache"]

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
MAX_RESULTS = 64  # names contain parts of addresses


class ResultCache(Generic[K, T]):
    """The last result of each archive and name. Only one thread computes at a time.

    A result is valid until the archive or the local date changes. A result that is not older than ``max_age``
    can be used instead of waiting for a new one.
    """

    def __init__(self, compute: Callable[[History, K, datetime], T], max_age: timedelta) -> None:
        self._compute = compute
        self._max_age = max_age
        self._results: dict[tuple[str, K], tuple[object, datetime, T]] = {}
        self._lock = Lock()

    def get(self, history: History, name: K) -> T:
        """Return the result for the archive as it is."""
        now, key = datetime.now(UTC), (str(history.archive_path), name)
        state = (_archive_state(history), now.astimezone().date())
        known = self._results.get(key)
        if known is not None and known[0] == state:
            return known[2]
        with self._lock:
            known = self._results.get(key)  # computed by another thread in the meantime
            if known is None or known[0] != state:
                known = state, now, self._compute(history, name, now)
                self._results.pop(key, None)  # the order is that of computation
                self._results[key] = known
                while len(self._results) > MAX_RESULTS:
                    del self._results[next(iter(self._results))]
        return known[2]

    def get_recent(self, history: History, name: K) -> T:
        """Return a result that is not older than ``max_age``. It is computed if there is none."""
        found = self.find_recent(history, name)
        return self.get(history, name) if found is None else found

    def find_recent(self, history: History, name: K) -> T | None:
        """Return a result that is not older than ``max_age``; None if there is none. Never waits."""
        known = self._results.get((str(history.archive_path), name))
        is_recent = known is not None and datetime.now(UTC) - known[1] < self._max_age
        return known[2] if known is not None and is_recent else None


def _archive_state(history: History) -> tuple[tuple[int, int], ...]:
    """Return size and time of the archive's files. They change with every commit."""
    found = []
    for suffix in ("", "-wal"):
        path = history.archive_path.with_name(history.archive_path.name + suffix)
        try:
            stat = path.stat()
        except OSError:
            continue
        found.append((stat.st_mtime_ns, stat.st_size))
    return tuple(found)
