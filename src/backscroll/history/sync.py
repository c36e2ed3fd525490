"""Read changes of the tools' files into the archive and the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from backscroll.archive.errors import is_archive_failure, is_busy, to_archive_error
from backscroll.history.stores import Stores
from backscroll.ingest import sync as ingest

if TYPE_CHECKING:
    from backscroll.model.sync_report import SyncReport

__all__ = ["sync"]


def sync(stores: Stores, progress: Callable[[int, int], None] | None, *, wait: bool) -> SyncReport | None:
    """Update archive and index. Return None if another process is syncing and ``wait`` is False."""
    archive = stores.archive
    try:
        with archive.sync_lock(None if wait else 0.0) as locked:
            if locked is None:
                return None
            if wait and locked.pending_erasure.is_pending:
                _finish_erasure(stores)
            report = ingest.sync(locked, stores.roots(), progress, index=lambda: stores.index.index)
    except sqlite3.Error as error:
        if not wait and is_busy(error):
            return None
        if is_archive_failure(error):
            raise to_archive_error(error, stores.archive_path) from error
        raise
    if archive.index_queue.is_pending or not stores.index_path.exists():
        stores.index.update()
    return report


def _finish_erasure(stores: Stores) -> None:
    from backscroll.ingest.rebuild import erase  # start-up: needed after an interrupted `forget` only

    erase(stores.archive, stores.index.index)
