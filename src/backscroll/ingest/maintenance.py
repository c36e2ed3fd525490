"""Looking after the archive: sessions forgotten everywhere, views made anew from what is kept."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.maintenance.forget import ForgetResult
from backscroll.archive.storage.originals import Original
from backscroll.index import Index, IndexDamagedError
from backscroll.ingest.extract import placed, retold_rows
from backscroll.ingest.indexer import update
from backscroll.model import SessionSummary, Unit
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import Source, named
from backscroll.sources.protocols import close

__all__ = ["Rebuilt", "erase", "forget", "rebuild"]

Progress = Callable[[int, int], None]  # bytes read, and how many there are


class Rebuilt(Struct):
    """What was remade."""

    units: int = 0  # told anew from their originals
    kept: int = 0  # left as they were: what lay beside them is gone, and they would tell less
    sessions: int = 0


def forget(archive: Archive, index: Index, summary: SessionSummary) -> ForgetResult:
    """Erase a session from the archive and the index for good; the tool's own files are not touched."""
    return replace(archive.maintenance.forget(summary), is_erased=erase(archive, index))


def erase(archive: Archive, index: Index) -> bool:
    """Leave nothing of what was forgotten in the index and in free space; False when others use the archive.

    Stopped on the way, the next sync does the rest.
    """
    if archive.pending_erasure.is_index_pending:
        if not _has_erased(archive, index):
            index.rebuild()  # a new one never had the words
            update(archive, index)
        archive.pending_erasure.mark_index_done()
    return archive.maintenance.vacuum()


def _has_erased(archive: Archive, index: Index) -> bool:
    """Take what was forgotten out of the index there is. False when it has to be made anew."""
    try:
        return update(archive, index) and index.purge_deleted()
    except (IndexDamagedError, OSError):
        return False


def rebuild(archive: Archive, index: Index, progress: Progress | None = None) -> Rebuilt:
    """Read every kept original again, files and rows, derive all sessions and make the index anew.

    Interrupted at any moment, the archive is whole, and the next sync derives what was left.
    """
    report = Rebuilt()
    originals = archive.originals.units_with_file()
    databases = archive.originals.units_with_rows()
    total = sum(one.size for one in (*originals, *databases))
    done = 0
    for work, tell in ((originals, _retold), (databases, retold_rows)):
        for (name, root), group in groupby(work, key=lambda one: (one.source, one.root)):
            source = named(name)
            try:
                for original, is_told in tell(archive, source, Path(root), group):
                    report.units += is_told
                    report.kept += not is_told
                    done += original.size
                    if progress is not None:
                        progress(done, total)
            finally:
                close(source)
    archive.invalidate_derived()
    report.sessions = len(archive.derive())
    index.rebuild()
    update(archive, index)
    return report


def _retold(
    archive: Archive, source: Source, root: Path, originals: Iterable[Original]
) -> Iterator[tuple[Original, bool]]:
    """Each original with whether it was told anew: from its place when it is still there, unchanged and with
    all that lies beside it, else from a copy."""
    there = {unit.path: unit for unit in source.units(root) if not unit.key} if root.is_dir() else {}
    for original in originals:
        if not original.size:  # it was emptied: what is kept is what it told before
            yield original, False
            continue
        unit = there.get(original.path)
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
            if copy is None:
                yield original, False
                continue
            items = (placed(item, str(folder), original.root) for item in source.read(copy))
            yield (
                original,
                archive.units.replace_from_original(original, items, Path(copy.path), may_be_incomplete=True),
            )


def _copy(archive: Archive, source: Source, original: Original, folder: Path) -> Unit | None:
    """The original in a folder of its own, where the source finds it as it found it below its root."""
    path = Path(original.path)
    if not path.is_relative_to(original.root):
        return None
    copy = folder / path.relative_to(original.root)
    copy.parent.mkdir(parents=True, exist_ok=True)
    archive.originals.write_file(original, copy)
    if original.modified_at is not None:
        at = original.modified_at / 1000
        os.utime(copy, (at, at))
    return next((unit for unit in source.units(folder) if unit.path == str(copy)), None)
