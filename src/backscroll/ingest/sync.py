"""Update the archive and the index: read units that changed, mark units that vanished.

This module imports only what `sync` without changes needs.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.archive.connection import is_archive_failure, is_busy, to_archive_error
from backscroll.archive.sync_state import ProgressFile
from backscroll.ingest.changed_units import ChangedUnit, find_changes
from backscroll.model.sync import SyncReport
from backscroll.readers.files import is_folder
from backscroll.sources.protocols import close

if TYPE_CHECKING:
    from backscroll.archive.archive import Archive
    from backscroll.archive.session_key import SessionKey
    from backscroll.index.store import Index
    from backscroll.sources import Source
    from backscroll.stores.stores import Stores


Progress = Callable[[int, int], None]  # estimated bytes: read, and in total


def sync(
    stores: Stores,
    progress: Progress | None = None,
    *,
    wait: bool = True,
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
            report = read_changes(
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


def _finish_erasure(stores: Stores) -> None:
    from backscroll.stores.indexer import erase

    erase(stores.archive, stores.index.index)


def _finish(stores: Stores) -> None:
    """Index what was read. The sync stays incomplete while another process writes the index."""
    is_indexed = True
    if stores.archive.index_queue.is_pending or not stores.index_path.exists():
        is_indexed = stores.index.update()
    if is_indexed:
        stores.archive.sync_state.mark_complete()


def _start_commit_worker(stores: Stores) -> None:
    """Process reported commits in the background, unless a process does it already.

    The hook program starts the process. `backscroll.hooks.event_recorder` describes its arguments.
    """
    import subprocess  # start-up: needed with the git hook only

    program = Path(__file__).absolute().parents[1] / "hooks" / "backscroll_hook.py"
    roots = [f"{root.source}={root.path}" for root in stores.named_roots]
    spool = stores.spool_path.absolute()
    command = [sys.executable, "-I", "-S", str(program), str(spool), "--work", *roots]
    with suppress(OSError):  # the next sync tries again
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        process.returncode = 0  # it outlives this process; without a return code, Popen would warn


def read_changes(
    archive: Archive,
    roots: Iterable[tuple[Source, Path]],
    progress: Progress | None = None,
    *,
    paths: Collection[str] | None = None,
    index: Callable[[], Index] | None = None,
    max_bytes: int | None = None,
    spool: Path | None = None,
) -> SyncReport:
    """Read every unit that changed since the last sync, and derive the affected sessions.

    With ``paths`` only units at or below them are checked. With an ``index``, large amounts of new messages
    are indexed while they are read. `indexer.update` indexes the jobs that are still queued afterwards.
    If more than ``max_bytes`` have changed, nothing is read and the report is deferred. ``spool`` is the
    folder with the records of hooks.
    """
    report = SyncReport()
    last_event_id = archive.last_event_id()
    changed: list[ChangedUnit] = []
    markers: list[ChangedUnit] = []
    vanished: list[int] = []
    used: list[Source] = []
    denied_roots: list[str] = []
    for source, root in roots:
        try:
            if not is_folder(root):
                continue
        except PermissionError:
            denied_roots.append(str(root))
            continue
        used.append(source)
        report.roots.append(str(root))
        found = find_changes(archive, source, root, paths)
        report.units += found.units
        changed += found.changed
        markers += found.change_markers
        vanished += found.vanished
    if vanished:
        report.vanished = archive.units.mark_gone(vanished)
    updated: set[SessionKey] = set()
    if max_bytes is not None and sum(one.unit.estimated_bytes for one in changed) > max_bytes:
        report.is_deferred = True
    try:
        if (changed or markers) and not report.is_deferred:
            from backscroll.ingest.read_units import read_units  # start-up: needed for changes only

            read_units(archive, changed, markers, report, updated, index=index, progress=progress)
        if spool is not None and is_folder(spool) and not report.is_deferred:
            from backscroll.ingest.hooks import ingest_hook_records  # start-up: needed with hooks only

            report.hook_events = ingest_hook_records(archive, spool)
    finally:
        # Units that were read are complete. Their sessions are derived even if the rest was interrupted.
        updated |= archive.derive()
        report.sessions = len(updated)
        report.problems = archive.count_problems(last_event_id) + len(denied_roots)
        report.unreadable = denied_roots + (archive.unreadable_paths() if report.problems else [])
        for source in used:
            close(source)
    return report
