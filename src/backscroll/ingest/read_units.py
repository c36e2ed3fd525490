"""Read changed units into the archive."""

from collections.abc import Callable, Iterator
from pathlib import Path

from backscroll.archive import Archive
from backscroll.archive.session_key import SessionKey
from backscroll.archive.write.unit_rows import KnownUnit
from backscroll.index import Index
from backscroll.ingest import parallel
from backscroll.ingest.bulk_read import bulk_read
from backscroll.ingest.changes import ChangedUnit, newest_first
from backscroll.ingest.first_page import first_page
from backscroll.model import Checkpoint, Unit
from backscroll.model.sync import SyncReport
from backscroll.sources import Source
from backscroll.sources.protocols import PathLookup, raw_rows

__all__ = ["read_units"]

MAX_ATTEMPTS = 3  # to read a file that changes while it is read


def read_units(
    archive: Archive,
    changed: list[ChangedUnit],
    markers: list[ChangedUnit],
    report: SyncReport,
    updated: set[SessionKey],
    *,
    index: Callable[[], Index] | None,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Read the changed units, then the change markers. Derived sessions are added to ``updated``."""
    total = sum(one.unit.estimated_bytes for one in changed)
    done = 0
    for size in _read_changed(archive, changed, report, updated, index):
        # Units that another process added in the meantime are read again and count twice.
        done = min(done + size, total)
        if progress is not None:
            progress(done, total)
    for marker in markers:
        _read_unit(archive, marker, report)


def _read_changed(
    archive: Archive,
    changed: list[ChangedUnit],
    report: SyncReport,
    updated: set[SessionKey],
    index: Callable[[], Index] | None,
) -> Iterator[int]:
    """Read large amounts of new units in parallel and the rest one by one. Yield the estimated bytes."""
    new = {(change.unit.path, change.unit.key): change for change in changed if change.known is None}
    batches = parallel.batches([change.unit for change in new.values()])
    if batches:
        for change in first_page(new.values()):
            _read_unit(archive, change, report)
            del new[change.unit.path, change.unit.key]
            yield change.unit.estimated_bytes
        updated |= archive.derive()
        batches = parallel.batches([change.unit for change in new.values()])
        for size, merged in bulk_read(archive, batches, updated, index):
            for unit in (unit for batch in merged for unit in batch.units):
                report.new += 1
                del new[unit.path, unit.key]
            yield size
    rest = [*new.values(), *(change for change in changed if change.known is not None)]
    for change in newest_first(rest):
        _read_unit(archive, change, report)
        yield change.unit.estimated_bytes


def _read_unit(archive: Archive, changed: ChangedUnit, report: SyncReport) -> None:
    source, unit, known = changed.source, changed.unit, changed.known
    checkpoint = _usable_checkpoint(archive, unit, known)
    if known is None:
        event, counter = "created", "new"
    elif known.is_gone:
        event, counter = "returned", "came_back"
    elif checkpoint is not None:
        event, counter = "grew", "grew"
    else:
        event, counter = "rewritten", "rewritten"
    for _ in range(MAX_ATTEMPTS):
        is_stored = archive.units.put(
            unit,
            source.platform,
            source.read(unit, checkpoint),
            event=event,
            is_appended=checkpoint is not None,
            keeps_file=parallel.keeps_file(unit),
            rows=raw_rows(source, unit),
        )
        if is_stored:
            setattr(report, counter, getattr(report, counter) + 1)
            return
        if (fresh := _changed_again(source, unit)) is None:
            return  # it is a problem, and the next sync tries again
        unit, checkpoint, event = fresh, None, "created" if known is None else "rewritten"


def _changed_again(source: Source, unit: Unit) -> Unit | None:
    """Return the current state of a unit; None if it is unchanged or gone."""
    if not isinstance(source, PathLookup):
        return None
    for fresh in source.units_at(Path(unit.root), [unit.path]) or ():
        if (fresh.path, fresh.key) == (unit.path, unit.key) and fresh.fingerprint != unit.fingerprint:
            return fresh
    return None


def _usable_checkpoint(archive: Archive, unit: Unit, known: KnownUnit | None) -> Checkpoint | None:
    """Return the checkpoint to continue from, if the file still starts with the content read before."""
    if known is None or known.is_gone or known.needs_retry or unit.size < known.size:
        return None
    checkpoint = archive.units.checkpoint(known)
    if checkpoint is None or checkpoint.offset > unit.size:
        return None
    if unit.size == known.size and not archive.originals.is_same_file(known.id, Path(unit.path)):
        return None  # modified in place
    return checkpoint if archive.units.is_prefix_unchanged(known, unit, checkpoint) else None
