"""Originals out of the archive: written back for a person, or told anew where the tools have lost them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.storage.originals import Original
from backscroll.model import Item, Message, Origin, Problem, TitleHint, ToolResult, UsageReport
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import Source
from backscroll.sources.protocols import close, raw_rows
from backscroll.sources.restore_rows import Restoring

__all__ = ["Extracted", "extract", "placed", "retold_rows"]


class Extracted(Struct, frozen=True):
    """What was written."""

    files: tuple[Path, ...]
    rows: int  # of databases
    blanked: tuple[str, ...]  # fields of rows that are empty, because what was in them was never kept


def extract(archive: Archive, session_id: str, folder: Path) -> Extracted:
    """Write a session's files back, byte for byte, and of databases its rows, laid out as a root.

    Nothing is overwritten. Rows that had vanished from the tool's own database are among them.
    """
    files = archive.originals.write_session(session_id, folder)
    number = 0
    blanked: set[str] = set()
    with Restoring(folder) as restoring:
        for original in archive.originals.units_with_rows(session_id):
            rows, fields = _add(archive, restoring, original, fullest=True)
            number += rows
            blanked |= fields
        files += restoring.finish()
    return Extracted(tuple(files), number, tuple(sorted(blanked)))


def _add(
    archive: Archive, restoring: Restoring, original: Original, *, fullest: bool
) -> tuple[int, set[str]]:
    at = original.modified_at
    modified = at / 1000 if at is not None else None
    return restoring.add(_name(original), archive.originals.rows(original, fullest=fullest), modified)


def _name(original: Original) -> str:
    """Where a unit's file lies below its root; a file from elsewhere keeps its name."""
    path = Path(original.path)
    return path.relative_to(original.root).as_posix() if path.is_relative_to(original.root) else path.name


def retold_rows(
    archive: Archive, source: Source, root: Path, originals: Iterable[Original]
) -> Iterator[tuple[Original, bool]]:
    """Each unit with whether it was told anew.

    From its database where that still has the rows that were read, else from one made of the kept rows.
    """
    there = {(unit.path, unit.key): unit for unit in source.units(root)} if root.is_dir() else {}
    changed: list[Original] = []
    for original in originals:
        unit = there.get((original.path, original.key))
        is_current = unit is not None and not original.is_gone and unit.fingerprint == original.fingerprint
        if (
            unit is None
            or not is_current
            or not archive.originals.has_same_rows(original, raw_rows(source, unit))
        ):
            changed.append(original)
            continue
        yield (
            original,
            archive.units.replace_from_original(
                original, source.read(unit), Path(unit.path), may_be_incomplete=False
            ),
        )
    close(source)
    if not changed:
        return
    with TempFolder() as folder:
        with Restoring(folder) as restoring:
            for original in changed:
                _add(archive, restoring, original, fullest=False)
            restoring.finish()
        copies = {(unit.path, unit.key): unit for unit in source.units(folder)}
        for original in changed:
            copy = copies.get((str(folder / _name(original)), original.key))
            if copy is None:
                yield original, False
                continue
            items = (placed(item, str(folder), original.root) for item in source.read(copy))
            yield (
                original,
                archive.units.replace_from_original(original, items, Path(copy.path), may_be_incomplete=True),
            )
        close(source)


def placed(item: Item, folder: str, root: str) -> Item:
    """An item with its origin where the original was."""
    match item:
        case Message() | ToolResult() | UsageReport() | TitleHint() | Problem():
            path = item.origin.path
            if path.startswith(folder):
                return replace(item, origin=Origin(root + path.removeprefix(folder), item.origin.place))
    return item
