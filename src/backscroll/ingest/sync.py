"""Update the archive: read units that changed, mark units that vanished.

This module imports only what `sync` without changes needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.ingest.changes import ChangedUnit, find_changes
from backscroll.model.sync import SyncReport
from backscroll.readers.file_access import is_folder
from backscroll.sources.protocols import close

if TYPE_CHECKING:
    from backscroll.archive import Archive
    from backscroll.archive.session_key import SessionKey
    from backscroll.index import Index
    from backscroll.sources import Source

__all__ = ["Progress", "sync"]

Progress = Callable[[int, int], None]  # estimated bytes: read, and in total


def sync(
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
