"""What the tools have that the archive does not know, and what it knows that they no longer have."""

from collections.abc import Collection, Iterable
from pathlib import Path

from msgspec import Struct

from backscroll.archive import Archive, Known
from backscroll.model import Unit
from backscroll.sources import Source

__all__ = ["Differences", "differences"]


class Differences(Struct):
    """What has become of the units below a root."""

    units: int  # looked at
    changed: list[tuple[Unit, Known | None]]  # to be read, and what is known of them
    vanished: list[int]  # their numbers
    signs: list[tuple[Unit, Known | None]] = []  # as ``changed``, to be read when all others have been


def differences(
    archive: Archive, source: Source, root: Path, paths: Collection[str] | None = None
) -> Differences:
    """Everything that changed below a root or, where changes were noticed, only what they bear on."""
    if paths is not None and (some := source.units_at(root, paths)) is not None:
        listed = list(some)
        met = {unit.path for unit in listed}
        for path in paths:
            met |= archive.units_below(source.name, root, path)
        return _compared(archive, listed, archive.known_units(source.name, root, met))
    current = archive.current_units(source.name, root)
    signs = source.signs(root)
    if signs is not None and _say_nothing_new(signs, current):
        return Differences(len(current), [], [])
    found = _everywhere(archive, source, root, current)
    if signs:
        # Once these are known, nobody asks for the others: they must not be before them.
        last = {unit.path for unit in signs}
        found.signs = [one for one in found.changed if not one[0].key and one[0].path in last]
        found.changed = [one for one in found.changed if one[0].key or one[0].path not in last]
    return found


def _say_nothing_new(signs: Iterable[Unit], current: dict[str, str]) -> bool:
    """Whether the units that change with every other are those that are known, and nothing is owed."""
    told = {unit.path: unit.fingerprint for unit in signs}
    return told == {name: token for name, token in current.items() if "\n" not in name} and (
        "?" not in current.values()
    )


def _everywhere(archive: Archive, source: Source, root: Path, current: dict[str, str]) -> Differences:
    """Of all units those that are not as they were; for every other one, two strings are compared."""
    number = 0
    unlike: list[Unit] = []
    unread: set[str] = set()  # databases of which not even the contents could be listed
    for unit in source.units(root):
        number += 1
        token = unit.fingerprint
        if current.pop(f"{unit.path}\n{unit.key}" if unit.key else unit.path, None) != token or not token:
            unlike.append(unit)
            if not token:
                unread.add(unit.path)
    if not unlike and not current:
        return Differences(number, [], [])
    left = {name.partition("\n")[0] for name in current} - unread
    known = archive.known_units(source.name, root, left | {unit.path for unit in unlike})
    changed = [(unit, known.get((unit.path, unit.key))) for unit in unlike]
    return Differences(
        number,
        [(unit, before) for unit, before in changed if archive.needs_reading(unit, before)],
        [
            known[path, key].number
            for path, _, key in (name.partition("\n") for name in current)
            if path in left
        ],
    )


def _compared(archive: Archive, listed: Iterable[Unit], known: dict[tuple[str, str], Known]) -> Differences:
    """These units, and of the known ones those that are not among them."""
    number = 0
    changed = []
    for unit in listed:
        number += 1
        before = known.pop((unit.path, unit.key), None)
        if archive.needs_reading(unit, before):
            changed.append((unit, before))
    return Differences(number, changed, [one.number for one in known.values() if not one.is_gone])
