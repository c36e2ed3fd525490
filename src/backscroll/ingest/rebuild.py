"""Rebuild sessions and index from archived originals."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from backscroll.archive import Archive
from backscroll.archive.storage.originals import Original
from backscroll.index import Index
from backscroll.ingest.extract import reparse_rows, replace_from_copy
from backscroll.ingest.indexer import update
from backscroll.model import Unit
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import Source, named
from backscroll.sources.protocols import close
from backscroll.sources.restore_rows import RowRestorer

__all__ = ["Rebuilt", "rebuild"]

Progress = Callable[[int, int], None]  # bytes read, and in total


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
    originals = archive.originals.units_with_file()
    databases = archive.originals.units_with_rows()
    total = sum(one.estimated_bytes for one in (*originals, *databases))
    done = 0
    for units, reparse in ((originals, _reparse_files), (databases, reparse_rows)):
        for (name, root), group in groupby(units, key=lambda one: (one.source, one.root)):
            source = named(name)
            try:
                for original, is_parsed in reparse(archive, source, Path(root), group):
                    report.units += is_parsed
                    report.kept += not is_parsed
                    done += original.estimated_bytes
                    if progress is not None:
                        progress(done, total)
            finally:
                close(source)
    archive.hooks.events.mark_unread()
    archive.invalidate_derived()
    report.sessions = len(archive.derive())
    index.rebuild()
    update(archive, index)
    return report


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
            yield original, replace_from_copy(archive, source, original, copy, folder)


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
            restorer.add(path.name, archive.originals.rows(original, fullest=True))
            restorer.finish()
    if original.modified_at is not None:
        at = original.modified_at / 1000
        os.utime(copy, (at, at))
    return next((unit for unit in source.units(folder) if unit.path == str(copy)), None)
