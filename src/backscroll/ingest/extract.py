"""Write archived originals to files, and parse archived database rows again."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.storage.originals import Original
from backscroll.model import Item, Message, Origin, Problem, TitleHint, ToolResult, Unit, UsageReport
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import Source
from backscroll.sources.protocols import close, raw_rows
from backscroll.sources.restore_rows import RowRestorer

__all__ = ["Extracted", "extract", "reparse_rows", "replace_from_copy"]


class Extracted(Struct, frozen=True):
    """Files that `extract` wrote."""

    files: tuple[Path, ...]
    rows: int  # database rows
    blanked: tuple[str, ...]  # fields that were credentials, which are never archived


def extract(archive: Archive, session_id: str, folder: Path) -> Extracted:
    """Write the files of a session byte for byte, and its database rows in the layout of a root.

    Nothing is overwritten. Rows that are gone from the tool's own database are included.
    """
    files = archive.originals.write_session(session_id, folder)
    count = 0
    blanked: set[str] = set()
    with RowRestorer(folder) as restorer:
        for original in archive.originals.units_with_rows(session_id):
            rows, fields = _add(archive, restorer, original, fullest=True)
            count += rows
            blanked |= fields
        files += restorer.finish()
    return Extracted(tuple(files), count, tuple(sorted(blanked)))


def _add(
    archive: Archive, restorer: RowRestorer, original: Original, *, fullest: bool
) -> tuple[int, set[str]]:
    at = original.modified_at
    modified = at / 1000 if at is not None else None
    return restorer.add(_name(original), archive.originals.rows(original, fullest=fullest), modified)


def _name(original: Original) -> str:
    """Return the path of a unit's file below its root; only the name if it is not below the root."""
    path = Path(original.path)
    return path.relative_to(original.root).as_posix() if path.is_relative_to(original.root) else path.name


def reparse_rows(
    archive: Archive, source: Source, root: Path, originals: Iterable[Original]
) -> Iterator[tuple[Original, bool]]:
    """Parse database units again. Yield each unit and whether that succeeded.

    The tool's database is used if it still has the same rows; otherwise one made of the archived rows.
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
        with RowRestorer(folder) as restorer:
            for original in changed:
                _add(archive, restorer, original, fullest=False)
            restorer.finish()
        copies = {(unit.path, unit.key): unit for unit in source.units(folder)}
        for original in changed:
            copy = copies.get((str(folder / _name(original)), original.key))
            yield original, replace_from_copy(archive, source, original, copy, folder)
        close(source)


def replace_from_copy(
    archive: Archive, source: Source, original: Original, copy: Unit | None, folder: Path
) -> bool:
    """Parse a copy of an original in a temporary folder. Return False if there is none or content is lost."""
    if copy is None:
        return False
    items = (_with_original_path(item, str(folder), original.root) for item in source.read(copy))
    return archive.units.replace_from_original(original, items, Path(copy.path), may_be_incomplete=True)


def _with_original_path(item: Item, folder: str, root: str) -> Item:
    """Return an item whose origin is the original path instead of the temporary one."""
    match item:
        case Message() | ToolResult() | UsageReport() | TitleHint() | Problem():
            path = item.origin.path
            if path.startswith(folder):
                return replace(item, origin=Origin(root + path.removeprefix(folder), item.origin.place))
    return item
