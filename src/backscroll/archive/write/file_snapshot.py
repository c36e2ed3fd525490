"""Detect that a file changed while it was read, so that everything stored comes from one version."""

import os
import time
from pathlib import Path

from backscroll.archive.write.unit_rows import prefix_hash, stat_or_none

__all__ = ["FileSnapshot"]

RECENTLY_WRITTEN_SECONDS = 600.0  # a file written to more recently may change at any moment


class FileSnapshot:
    """Identity, size and time of a file before it is read.

    Data appended after `size` bytes does not matter to a reader that stops there.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = str(path)
        self._size = size
        self._before = stat_or_none(self._path)
        is_recent = (
            self._before is not None and time.time() - self._before.st_mtime < RECENTLY_WRITTEN_SECONDS
        )
        self._prefix_hash = _prefix_hash_or_none(self._path, size) if is_recent else None

    def is_unchanged(self, *, may_grow: bool) -> bool:
        """Return whether the file is the same, or if `may_grow` still begins with the same bytes."""
        now = stat_or_none(self._path)
        if now is None or self._before is None:
            return False
        if _identity(now) == _identity(self._before):
            return True
        if not may_grow or now.st_ino != self._before.st_ino or now.st_size < self._size:
            return False
        return self._prefix_hash is not None and (
            _prefix_hash_or_none(self._path, self._size) == self._prefix_hash
        )


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _prefix_hash_or_none(path: str, size: int) -> bytes | None:
    try:
        return prefix_hash(Path(path), size)
    except OSError:
        return None
