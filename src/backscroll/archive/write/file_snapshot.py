"""Whether a file stood still while it was read, so that all that was taken from it is of one state."""

import os
import time
from pathlib import Path

from backscroll.archive.write.units import prefix_of, status_of

__all__ = ["Stillness"]

_WARM = 600.0  # seconds since it was written: a file that may be written to again at any moment


class Stillness:
    """A file as it is before it is read; `holds` says afterwards whether what was read is what lies there.

    What is added behind ``size`` bytes does not matter to whoever reads no further.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = str(path)
        self._size = size
        self._before = status_of(self._path)
        is_warm = self._before is not None and time.time() - self._before.st_mtime < _WARM
        self._beginning = _beginning(self._path, size) if is_warm else None

    def holds(self, *, may_grow: bool) -> bool:
        """Whether the same file still begins with the bytes that it had."""
        now = status_of(self._path)
        if now is None or self._before is None:
            return False
        if _stamp(now) == _stamp(self._before):
            return True
        if not may_grow or now.st_ino != self._before.st_ino or now.st_size < self._size:
            return False
        return self._beginning is not None and _beginning(self._path, self._size) == self._beginning


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _beginning(path: str, size: int) -> bytes | None:
    try:
        return prefix_of(Path(path), size)
    except OSError:
        return None
