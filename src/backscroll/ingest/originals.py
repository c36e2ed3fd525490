"""Archived originals: write them to files, or rebuild sessions and index from them."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.query.originals import Original
from backscroll.index.store import Index
from backscroll.model.message import Message, Origin
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Item, TitleHint, ToolResult, UsageReport
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import SOURCES, Source, named
from backscroll.sources.protocols import close, raw_rows
from backscroll.sources.restore_rows import RowRestorer
from backscroll.stores.indexer import update

Progress = Callable[[int, int], None]  # bytes read, and in total


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
            rows, fields = _restore_rows(archive, restorer, original, fullest=True)
            count += rows
            blanked |= fields
        files += restorer.finish()
    return Extracted(tuple(files), count, tuple(sorted(blanked)))


class Rebuilt(Struct):
    """Result of a rebuild."""

    units: int = 0  # parsed again from their originals
    kept: int = 0  # unchanged: companion files are gone, and parsing would lose content
    sessions: int = 0


def rebuild(archive: Archive, index: Index, progress: Progress | None = None) -> Rebuilt:
    """Parse every archived original again, derive all sessions and rebuild the index.

    If this is interrupted, the archive is consistent and the next sync derives the rest.
    """
    report = Rebuilt()
    for is_parsed in parse_originals(archive, progress):
        report.units += is_parsed
        report.kept += not is_parsed
    archive.hooks.events.mark_unread()
    archive.invalidate_derived()
    report.sessions = len(archive.derive())
    index.rebuild()
    update(archive, index)
    return report


def parse_originals(
    archive: Archive, progress: Progress | None = None, only: Collection[int] | None = None
) -> Iterator[bool]:
    """Parse archived originals again, all or those of some units. Yield for each whether that succeeded."""
    originals, databases = (
        [one for one in found if only is None or one.id in only]
        for found in (archive.originals.units_with_file(), archive.originals.units_with_rows())
    )
    total = sum(one.estimated_bytes for one in (*originals, *databases))
    done = 0
    for units, reparse in ((originals, _reparse_files), (databases, _reparse_rows)):
        for (name, root), group in groupby(units, key=lambda one: (one.source, one.root)):
            source = named(name)
            try:
                for original, is_parsed in reparse(archive, source, Path(root), group):
                    yield is_parsed
                    done += original.estimated_bytes
                    if progress is not None:
                        progress(done, total)
            finally:
                close(source)


def _reparse_files(
    archive: Archive, source: Source, root: Path, originals: Iterable[Original]
) -> Iterator[tuple[Original, bool]]:
    """Parse files again. Yield each original and whether that succeeded.

    The tool's file is used if it is unchanged, together with its companion files; otherwise a copy.
    """
    existing = {unit.path: unit for unit in source.units(root) if not unit.key} if root.is_dir() else {}
    for original in originals:
        if not original.size:  # it was emptied; the archive keeps its earlier content
            yield original, False
            continue
        unit = existing.get(original.path)
        if unit is not None and archive.originals.is_same_file(original.id, Path(unit.path)):
            yield (
                original,
                archive.units.replace_from_original(
                    original, source.read(unit), Path(unit.path), may_be_incomplete=False
                ),
            )
            continue
        with TempFolder() as folder:
            copy = _copy(archive, source, original, folder)
            yield original, _replace_from_copy(archive, source, original, copy, folder)


def _copy(archive: Archive, source: Source, original: Original, folder: Path) -> Unit | None:
    """Write an original into a folder with the layout of its root, and return its unit."""
    path = Path(original.path)
    if not path.is_relative_to(original.root):
        return None
    copy = folder / path.relative_to(original.root)
    copy.parent.mkdir(parents=True, exist_ok=True)
    archive.originals.write_file(original, copy)
    if archive.originals.side_files(original):  # long tool results, and the sidecar of a subagent
        with RowRestorer(folder) as restorer:
            restorer.add(path.name, archive.originals.rows(original, fullest=True), source.schema)
            restorer.finish()
    if original.modified_at is not None:
        at = original.modified_at / 1000
        os.utime(copy, (at, at))
    return next((unit for unit in source.units(folder) if unit.path == str(copy)), None)


def _reparse_rows(
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
            or not archive.originals.has_same_rows(original.id, raw_rows(source, unit))
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
                _restore_rows(archive, restorer, original, fullest=False)
            restorer.finish()
        copies = {(unit.path, unit.key): unit for unit in source.units(folder)}
        for original in changed:
            copy = copies.get((str(folder / _relative_path(original)), original.key))
            yield original, _replace_from_copy(archive, source, original, copy, folder)
        close(source)


def _replace_from_copy(
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


def _restore_rows(
    archive: Archive, restorer: RowRestorer, original: Original, *, fullest: bool
) -> tuple[int, set[str]]:
    at = original.modified_at
    modified = at / 1000 if at is not None else None
    source = SOURCES.get(original.source, Source)  # the source may not be registered
    rows, schema = archive.originals.rows(original, fullest=fullest), source.schema
    return restorer.add(_relative_path(original), rows, schema, modified)


def _relative_path(original: Original) -> str:
    """Return the path of a unit's file below its root; only the name if it is not below the root."""
    path = Path(original.path)
    return path.relative_to(original.root).as_posix() if path.is_relative_to(original.root) else path.name
