"""What the tools have that the archive does not know, and what it knows that they no longer have."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.archive.write.fingerprints import folder_of
from backscroll.sources.protocols import ChangeMarkers, FolderListing, PathLookup

if TYPE_CHECKING:
    from backscroll.archive import Archive
    from backscroll.archive.write.units import KnownUnit
    from backscroll.model import Unit
    from backscroll.sources import Source
    from backscroll.sources.protocols import Folder

__all__ = ["Differences", "differences"]


class Differences:
    """What has become of the units below a root."""

    def __init__(
        self,
        units: int,
        changed: Sequence[tuple[Unit, KnownUnit | None]] = (),
        vanished: Sequence[int] = (),
        unsettled: Collection[str] = (),
    ) -> None:
        self.units = units  # looked at
        self.changed = changed  # to be read, and what is known of them
        self.vanished = vanished  # their numbers
        self.unsettled = unsettled  # paths of what is to be read, has vanished, or is not to be known
        self.change_markers: Sequence[
            tuple[Unit, KnownUnit | None]
        ] = ()  # as ``changed``, to be read after all others


def differences(
    archive: Archive, source: Source, root: Path, paths: Collection[str] | None = None
) -> Differences:
    """Everything that changed below a root or, where changes were noticed, only what they bear on."""
    found_at = source.units_at(root, paths) if paths is not None and isinstance(source, PathLookup) else None
    if paths is not None and found_at is not None:
        listed = list(found_at)
        met = {unit.path for unit in listed}
        for path in paths:
            met |= archive.units.below(source.name, root, path)
        return _compared(archive, listed, archive.units.known(source.name, root, met))
    if isinstance(source, FolderListing):
        return _by_folder(archive, source, root, source.folders(root))
    current = archive.fingerprints.units(source.name, root)
    markers = source.change_markers(root) if isinstance(source, ChangeMarkers) else None
    if markers is not None and _are_unchanged(markers, current):
        return Differences(len(current))
    found = _among(archive, source, root, source.units(root), current)
    if markers:
        # Once these are known, nobody asks for the others: they must not be before them.
        last = {unit.path for unit in markers}
        found.change_markers = [one for one in found.changed if not one[0].key and one[0].path in last]
        found.changed = [one for one in found.changed if one[0].key or one[0].path not in last]
    return found


def _by_folder(archive: Archive, source: Source, root: Path, folders: Iterable[Folder]) -> Differences:
    """Of all units those that are not as they were, without a thought for folders that look as they did."""
    fingerprints = archive.fingerprints.folders(source.name, root)
    number = 0
    unlike: list[Folder] = []
    closed: list[Folder] = []
    for folder in folders:
        number += folder.unit_count
        if folder.is_unreadable:
            closed.append(folder)
            fingerprints = {
                path: one for path, one in fingerprints.items() if not path.startswith(folder.path)
            }
        elif fingerprints.pop(folder.path, None) != folder.fingerprint:
            unlike.append(folder)
    if not unlike and not fingerprints and not closed:
        return Differences(number)
    there = [folder.path for folder in unlike]
    current = archive.fingerprints.units(source.name, root, [*there, *fingerprints])
    found = _among(
        archive, source, root, chain.from_iterable(one.units() for one in (*unlike, *closed)), current
    )
    found.units = number
    owed = {folder_of(path) for path in found.unsettled}
    archive.fingerprints.save_folders(
        source.name,
        root,
        changed={one.path: one.fingerprint for one in unlike if one.path not in owed},
        gone=fingerprints.keys() - owed,
    )
    return found


def _are_unchanged(markers: Iterable[Unit], current: dict[str, str]) -> bool:
    """Whether the units that change with every other are those that are known, and nothing is owed."""
    told = {unit.path: unit.fingerprint for unit in markers}
    return told == {name: token for name, token in current.items() if "\0" not in name} and (
        "?" not in current.values()
    )


def _among(
    archive: Archive, source: Source, root: Path, listed: Iterable[Unit], current: dict[str, str]
) -> Differences:
    """Of these units those that are not as they were; for every other one, two strings are compared."""
    number = 0
    unlike: list[Unit] = []
    unread: set[str] = set()  # databases of which not even the contents could be listed
    for unit in listed:
        number += 1
        token = unit.fingerprint
        if current.pop(f"{unit.path}\0{unit.key}" if unit.key else unit.path, None) != token or not token:
            unlike.append(unit)
            if not token:
                unread.add(unit.path)
    if not unlike and not current:
        return Differences(number)
    left = {name.partition("\0")[0] for name in current} - unread
    known = archive.units.known(source.name, root, left | {unit.path for unit in unlike})
    changed: list[tuple[Unit, KnownUnit | None]] = []
    unsettled = left.copy()
    for unit in unlike:
        before = known.get((unit.path, unit.key))
        is_read = archive.units.needs_reading(unit, before)
        if is_read:
            changed.append((unit, before))
        if is_read or before is None:
            unsettled.add(unit.path)
    names = (name.partition("\0") for name in current)
    vanished = [known[path, key].id for path, _, key in names if path in left]
    return Differences(number, changed, vanished, unsettled)


def _compared(
    archive: Archive, listed: Iterable[Unit], known: dict[tuple[str, str], KnownUnit]
) -> Differences:
    """These units, and of the known ones those that are not among them."""
    number = 0
    changed = []
    for unit in listed:
        number += 1
        before = known.pop((unit.path, unit.key), None)
        if archive.units.needs_reading(unit, before):
            changed.append((unit, before))
        if not unit.fingerprint:  # what is in it could not be listed
            within = f"{unit.path}{os.sep}"
            known = {place: one for place, one in known.items() if not place[0].startswith(within)}
    return Differences(number, changed, [one.id for one in known.values() if not one.is_gone])
