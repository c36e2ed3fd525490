"""Read changes of the tools' files into the archive and the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from backscroll.archive.errors import is_archive_failure, is_busy, to_archive_error
from backscroll.archive.sync_progress import ProgressFile
from backscroll.history.stores import Stores
from backscroll.ingest import sync as ingest

if TYPE_CHECKING:
    from backscroll.model.sync import SyncReport

__all__ = ["sync"]

Progress = Callable[[int, int], None]


def sync(
    stores: Stores,
    progress: Progress | None,
    *,
    wait: bool,
    max_bytes: int | None = None,
    is_background: bool = False,
) -> SyncReport | None:
    """Update archive and index. Return None if another process is syncing and ``wait`` is False.

    While this process waits, ``progress`` reports on the other one. If more than ``max_bytes`` have changed,
    nothing is read, the archive is marked as incomplete and the report is deferred.
    """
    archive = stores.writable_archive
    file = ProgressFile(stores.archive_path, is_background=is_background)

    def while_waiting() -> None:
        if progress is not None and (other := file.read()) is not None and other.total:
            progress(other.done, other.total)

    def step(done: int, total: int) -> None:
        file.step(done, total)
        if progress is not None:
            progress(done, total)

    try:
        with archive.sync_lock(None if wait else 0.0, while_waiting) as locked:
            if locked is None:
                return None
            if is_background:
                file.step(0, 0)
            if wait and locked.pending_erasure.is_pending:
                _finish_erasure(stores)
            report = ingest.sync(
                locked,
                stores.roots(),
                step,
                index=lambda: stores.index.index,
                max_bytes=max_bytes,
                spool=stores.spool_path,
            )
            if report.is_deferred:
                locked.sync_state.mark_incomplete()
                return report
            if wait:
                _finish(stores)  # under the lock: a process that waits for this sync also waits for the index
    except sqlite3.Error as error:
        if not wait and is_busy(error):
            return None
        if is_archive_failure(error):
            raise to_archive_error(error, stores.archive_path) from error
        raise
    finally:
        file.delete()
    if not wait:
        _finish(stores)
    if report.hook_events and archive.hooks.commits.is_pending:
        _start_commit_worker(stores)
    return report


def _finish(stores: Stores) -> None:
    """Index what was read. The sync stays incomplete while another process writes the index."""
    is_indexed = True
    if stores.archive.index_queue.is_pending or not stores.index_path.exists():
        is_indexed = stores.index.update()
    if is_indexed:
        stores.archive.sync_state.mark_complete()


def _start_commit_worker(stores: Stores) -> None:
    """Process reported commits in the background, unless a process does it already."""
    import subprocess  # start-up: needed with the git hook only

    from backscroll.hooks.shell_command import worker_command

    roots = [f"{root.source}={root.path}" for root in stores.named_roots]
    with suppress(OSError):  # the next sync tries again
        process = subprocess.Popen(
            worker_command(stores.spool_path, roots),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        process.returncode = 0  # it outlives this process; without a return code, Popen would warn


def _finish_erasure(stores: Stores) -> None:
    from backscroll.ingest.erase import erase  # start-up: needed after an interrupted `forget` only

    erase(stores.archive, stores.index.index)
