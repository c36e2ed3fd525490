"""Update the archive and the index: read units that changed, mark units that vanished.

This module imports only what `sync` without changes needs.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.archive.connection import is_archive_failure, is_busy, to_archive_error
from backscroll.archive.sync_state import ProgressFile, folder_of
from backscroll.model.sync import SyncReport
from backscroll.readers.files import is_folder
from backscroll.sources.protocols import ChangeMarkers, FolderListing, PathLookup, close

if TYPE_CHECKING:
    from backscroll.archive.archive import Archive
    from backscroll.archive.session_key import SessionKey
    from backscroll.archive.write.unit_rows import KnownUnit
    from backscroll.index.store import Index
    from backscroll.model.store import Unit
    from backscroll.sources import Source
    from backscroll.sources.protocols import Folder
    from backscroll.stores.stores import Stores


Progress = Callable[[int, int], None]  # estimated bytes: read, and in total


def sync(
    stores: Stores,
    progress: Progress | None = None,
    *,
    wait: bool = True,
    full: bool = False,
    max_bytes: int | None = None,
    is_background: bool = False,
) -> SyncReport | None:
    """Update archive and index. Return None if another process is syncing and ``wait`` is False.

    With ``full``, every unit is read again, whatever its fingerprint.

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
                full=full,
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
    full: bool = False,
    paths: Collection[str] | None = None,
    index: Callable[[], Index] | None = None,
    max_bytes: int | None = None,
    spool: Path | None = None,
) -> SyncReport:
    """Read every unit that changed since the last sync, and derive the affected sessions.

    With ``full`` every unit is read, from its start. With ``paths`` only units at or below them are checked.
    With an ``index``, large amounts of new messages are indexed while they are read. `indexer.update` indexes
    the jobs that are still queued afterwards. If more than ``max_bytes`` have changed, nothing is read and
    the report is deferred. ``spool`` is the folder with the records of hooks.
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
        found = find_changes(archive, source, root, paths, full=full)
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


class ChangedUnit:
    """A unit to read."""

    def __init__(self, source: Source, unit: Unit, known: KnownUnit | None, *, full: bool = False) -> None:
        self.source = source
        self.unit = unit
        self.known = known  # its state in the archive; None if it is new
        self.full = full  # read it from its start, changed or not


def newest_first(changed: Iterable[ChangedUnit]) -> list[ChangedUnit]:
    """Return the units by time of modification, the newest first."""
    return sorted(changed, key=lambda change: change.unit.modified_at, reverse=True)


class Changes:
    """Changes of the units below a root."""

    def __init__(
        self,
        units: int,
        changed: Sequence[ChangedUnit] = (),
        vanished: Sequence[int] = (),
        unfinished_paths: Collection[str] = (),
    ) -> None:
        self.units = units  # number of units that were checked
        self.changed = changed
        self.vanished = vanished  # ids
        self.unfinished_paths = unfinished_paths  # of units that are to be read, vanished or excluded
        self.change_markers: Sequence[ChangedUnit] = ()  # to read after all others


def find_changes(
    archive: Archive,
    source: Source,
    root: Path,
    paths: Collection[str] | None = None,
    *,
    full: bool = False,
) -> Changes:
    """Return the changes below a root, or only those at the given paths. ``full`` returns every unit."""
    units_at = source.units_at(root, paths) if paths is not None and isinstance(source, PathLookup) else None
    if paths is not None and units_at is not None:
        units = list(units_at)
        checked = {unit.path for unit in units}
        for path in paths:
            checked |= archive.units.below(source.name, root, path)
        return _compare_all(archive, source, units, archive.units.known(source.name, root, checked))
    if isinstance(source, FolderListing) and not full:
        return _compare_folders(archive, source, root, source.folders(root))
    markers = source.change_markers(root) if isinstance(source, ChangeMarkers) else None
    if full:
        known = archive.units.known(source.name, root)
        found = _compare_all(archive, source, source.units(root), known, full=True)
    else:
        current = archive.fingerprints.units(source.name, root)
        if markers is not None and _are_unchanged(markers, current):
            return Changes(len(current))
        found = _compare_fingerprints(archive, source, root, source.units(root), current)
    if markers:
        # Unchanged markers skip all other units. They are stored last, after the units they represent.
        paths_last = {unit.path for unit in markers}
        is_marker = [not one.unit.key and one.unit.path in paths_last for one in found.changed]
        found.change_markers = [one for one, last in zip(found.changed, is_marker, strict=True) if last]
        found.changed = [one for one, last in zip(found.changed, is_marker, strict=True) if not last]
    return found


def _compare_folders(archive: Archive, source: Source, root: Path, folders: Iterable[Folder]) -> Changes:
    """Compare the units of folders with a changed fingerprint. Unchanged folders are skipped as a whole."""
    fingerprints = archive.fingerprints.folders(source.name, root)
    count = 0
    changed: list[Folder] = []
    unreadable: list[Folder] = []
    for folder in folders:
        count += folder.unit_count
        if folder.is_unreadable:
            unreadable.append(folder)
            fingerprints = {
                path: fingerprint
                for path, fingerprint in fingerprints.items()
                if not path.startswith(folder.path)
            }
        elif fingerprints.pop(folder.path, None) != folder.fingerprint:
            changed.append(folder)
    if not changed and not fingerprints and not unreadable:
        return Changes(count)
    current = archive.fingerprints.units(
        source.name, root, [*(folder.path for folder in changed), *fingerprints]
    )
    units = chain.from_iterable(folder.units() for folder in (*changed, *unreadable))
    found = _compare_fingerprints(archive, source, root, units, current)
    found.units = count
    unfinished = {folder_of(path) for path in found.unfinished_paths}
    archive.fingerprints.save_folders(
        source.name,
        root,
        changed={folder.path: folder.fingerprint for folder in changed if folder.path not in unfinished},
        gone=fingerprints.keys() - unfinished,
    )
    return found


def _are_unchanged(markers: Iterable[Unit], current: dict[str, str]) -> bool:
    """Return whether the change markers match the archive, and no unit needs another attempt."""
    fingerprints = {unit.path: unit.fingerprint for unit in markers}
    return fingerprints == {name: token for name, token in current.items() if "\0" not in name} and (
        "?" not in current.values()
    )


def _compare_fingerprints(
    archive: Archive, source: Source, root: Path, units: Iterable[Unit], current: dict[str, str]
) -> Changes:
    """Compare fingerprints. An unchanged unit costs one comparison of two strings."""
    count = 0
    different: list[Unit] = []
    unlistable: set[str] = set()  # databases and folders whose units could not be listed
    for unit in units:
        count += 1
        token = unit.fingerprint
        if current.pop(f"{unit.path}\0{unit.key}" if unit.key else unit.path, None) != token or not token:
            different.append(unit)
            if not token:
                unlistable.add(unit.path)
    if not different and not current:
        return Changes(count)
    missing = {name.partition("\0")[0] for name in current} - unlistable
    if unlistable:
        folders = tuple(f"{path}{os.sep}" for path in unlistable)
        missing = {path for path in missing if not path.startswith(folders)}
    known = archive.units.known(source.name, root, missing | {unit.path for unit in different})
    changed: list[ChangedUnit] = []
    unfinished = missing.copy()
    for unit in different:
        before = known.get((unit.path, unit.key))
        needs_reading = archive.units.needs_reading(unit, before)
        if needs_reading:
            changed.append(ChangedUnit(source, unit, before))
        if needs_reading or before is None:
            unfinished.add(unit.path)
    names = (name.partition("\0") for name in current)
    vanished = [known[path, key].id for path, _, key in names if path in missing]
    return Changes(count, changed, vanished, unfinished)


def _compare_all(
    archive: Archive,
    source: Source,
    units: Iterable[Unit],
    known: dict[tuple[str, str], KnownUnit],
    *,
    full: bool = False,
) -> Changes:
    """Compare listed units with known ones. Known units that are not listed have vanished."""
    count = 0
    changed: list[ChangedUnit] = []
    for unit in units:
        count += 1
        before = known.pop((unit.path, unit.key), None)
        if archive.units.needs_reading(unit, before, full=full):
            changed.append(ChangedUnit(source, unit, before, full=full))
        if not unit.fingerprint:  # its content could not be listed
            prefix = f"{unit.path}{os.sep}"
            known = {key: stored for key, stored in known.items() if not key[0].startswith(prefix)}
    return Changes(count, changed, [stored.id for stored in known.values() if not stored.is_gone])
