"""Compare the tools' units with the archive: which are new, changed or gone."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.archive.sync_state import folder_of
from backscroll.sources.protocols import ChangeMarkers, FolderListing, PathLookup

if TYPE_CHECKING:
    from backscroll.archive.archive import Archive
    from backscroll.archive.write.unit_rows import KnownUnit
    from backscroll.model.store import Unit
    from backscroll.sources import Source
    from backscroll.sources.protocols import Folder


class ChangedUnit:
    """A unit to read."""

    def __init__(self, source: Source, unit: Unit, known: KnownUnit | None) -> None:
        self.source = source
        self.unit = unit
        self.known = known  # its state in the archive; None if it is new


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
    archive: Archive, source: Source, root: Path, paths: Collection[str] | None = None
) -> Changes:
    """Return the changes below a root, or only those at the given paths."""
    units_at = source.units_at(root, paths) if paths is not None and isinstance(source, PathLookup) else None
    if paths is not None and units_at is not None:
        units = list(units_at)
        checked = {unit.path for unit in units}
        for path in paths:
            checked |= archive.units.below(source.name, root, path)
        return _compare_all(archive, source, units, archive.units.known(source.name, root, checked))
    if isinstance(source, FolderListing):
        return _compare_folders(archive, source, root, source.folders(root))
    current = archive.fingerprints.units(source.name, root)
    markers = source.change_markers(root) if isinstance(source, ChangeMarkers) else None
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
    archive: Archive, source: Source, units: Iterable[Unit], known: dict[tuple[str, str], KnownUnit]
) -> Changes:
    """Compare listed units with known ones. Known units that are not listed have vanished."""
    count = 0
    changed: list[ChangedUnit] = []
    for unit in units:
        count += 1
        before = known.pop((unit.path, unit.key), None)
        if archive.units.needs_reading(unit, before):
            changed.append(ChangedUnit(source, unit, before))
        if not unit.fingerprint:  # its content could not be listed
            prefix = f"{unit.path}{os.sep}"
            known = {key: stored for key, stored in known.items() if not key[0].startswith(prefix)}
    return Changes(count, changed, [stored.id for stored in known.values() if not stored.is_gone])
