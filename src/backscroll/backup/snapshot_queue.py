"""Snapshots of databases, taken in another thread while the caller compresses other files."""

import sqlite3
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from backscroll.backup.snapshot import take_snapshot
from backscroll.backup.sources import FileToBackUp
from backscroll.sources.capabilities import BackupContents, SessionSelection
from backscroll.sources.capability_lookup import required_capability

__all__ = ["SnapshotQueue"]


class SnapshotQueue:
    """Takes snapshots of databases in order, one ahead of the caller. A context manager."""

    def __init__(self, folder: Path, *, with_secrets: bool) -> None:
        self._folder = folder
        self._with_secrets = with_secrets
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[FileToBackUp] = deque()
        self._count = 0
        self._started: dict[Path, Future[Path | None]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def start(self, files: Iterable[FileToBackUp]) -> None:
        """Begin with the first of the databases that `take` will ask for."""
        self._waiting.extend(files)
        self._start_next()

    def take(self, file: FileToBackUp) -> Path | None:
        """Return the snapshot of a database; None if it contains no selected session.

        The caller deletes it. Raises the errors of `take_snapshot`.
        """
        if file.location not in self._started:
            self._start(file)
        future = self._started.pop(file.location)
        try:
            return future.result()
        finally:
            self._start_next()

    def _start_next(self) -> None:
        if self._waiting:
            self._start(self._waiting.popleft())

    def _start(self, file: FileToBackUp) -> None:
        self._count += 1
        folder = self._folder / f"snapshot-{self._count}"
        folder.mkdir()
        self._started[file.location] = self._pool.submit(_snapshot, file, folder, self._with_secrets)


def _snapshot(file: FileToBackUp, folder: Path, with_secrets: bool) -> Path | None:
    """Copy a database, or the selected sessions in it."""
    source, ids = file.source, file.selected_ids
    assert source is not None
    remove_secrets = None if with_secrets else required_capability(source, BackupContents).remove_secrets
    if ids is None:
        return take_snapshot(file.location, folder, remove_secrets)
    copy_rows = partial(_copy_sessions, required_capability(source, SessionSelection), file.path, ids)
    return take_snapshot(file.location, folder, remove_secrets, copy_rows)


def _copy_sessions(
    selection: SessionSelection,
    path: str,
    ids: frozenset[str],
    original: sqlite3.Connection,
    copy: sqlite3.Connection,
) -> bool:
    return selection.copy_sessions(path, original, copy, ids)
