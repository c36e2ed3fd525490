"""Read changed units into the archive: one by one or, for large amounts of new ones, in parallel.

In parallel, the newest units are read first and alone, for the first page of a list. Worker processes read
the rest into shards (`parallel`), which are merged into the archive and indexed in rounds.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from sqlite3 import IntegrityError

from backscroll.archive.archive import Archive
from backscroll.archive.session_key import SessionKey
from backscroll.archive.write.unit_rows import KnownUnit
from backscroll.index.documents import SpooledDocuments
from backscroll.index.store import Index, IndexDamagedError
from backscroll.ingest import parallel
from backscroll.ingest.parallel import Batch, Shard, malloc_trim
from backscroll.ingest.sync import ChangedUnit, newest_first
from backscroll.model.store import SESSION, Unit
from backscroll.model.stream import Checkpoint
from backscroll.model.sync import SyncReport
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import Source
from backscroll.sources.protocols import PathLookup, raw_rows
from backscroll.stores.indexer import Indexer

FIRST_PAGE_SESSIONS = 20  # read before the workers start, which takes half a second
FIRST_PAGE_BYTES = 8 * 1024 * 1024
MAX_MERGED_SHARDS = 8  # in one transaction
MIN_ROUND_BYTES = 24 * 1024 * 1024  # of spooled documents that are indexed together
MIN_LAST_ROUND_BYTES = 8 * 1024 * 1024  # the same near the end
ROUND_FRACTION = 16  # a round is at least 1/16 of all documents: deriving costs more the larger the archive
EARLY_BYTES = 48 * 1024 * 1024  # of documents that are committed at once, so that the newest can be found
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
        for change in _first_page(new.values()):
            _read_unit(archive, change, report)
            del new[change.unit.path, change.unit.key]
            yield change.unit.estimated_bytes
        updated |= archive.derive()
        batches = parallel.batches([change.unit for change in new.values()])
        for size, merged in _bulk_read(archive, batches, updated, index):
            for unit in (unit for batch in merged for unit in batch.units):
                report.new += 1
                del new[unit.path, unit.key]
            yield size
    rest = [*new.values(), *(change for change in changed if change.known is not None)]
    for change in newest_first(rest):
        _read_unit(archive, change, report)
        yield change.unit.estimated_bytes


def _first_page(changed: Iterable[ChangedUnit]) -> list[ChangedUnit]:
    """Return the newest units: enough for the first page of a list, and read in a fraction of a second."""
    found: list[ChangedUnit] = []
    size = session_count = 0
    for change in newest_first(changed):
        if size >= FIRST_PAGE_BYTES or session_count >= FIRST_PAGE_SESSIONS:
            break
        if change.unit.estimated_bytes > FIRST_PAGE_BYTES:
            continue
        found.append(change)
        size += change.unit.estimated_bytes
        session_count += change.unit.kind == SESSION.name
    return found


def _read_unit(archive: Archive, changed: ChangedUnit, report: SyncReport) -> None:
    source, unit, known = changed.source, changed.unit, changed.known
    checkpoint = None if changed.full else _usable_checkpoint(archive, unit, known)
    if checkpoint is not None and known is not None and _is_unchanged(archive, source, unit, known):
        archive.units.save_fingerprint(known.id, unit.fingerprint)
        return
    if known is None:
        event, counter = "created", "new"
    elif known.is_gone:
        event, counter = "returned", "came_back"
    elif checkpoint is not None:
        event, counter = "grew", "grew"
    elif changed.full and known.is_current(unit.fingerprint):
        event, counter = "reparsed", "reread"
    else:
        event, counter = "rewritten", "rewritten"
    for _ in range(MAX_ATTEMPTS):
        is_stored = archive.units.put(
            unit,
            source.platform,
            source.read(unit, checkpoint),
            event=event,
            is_appended=checkpoint is not None,
            keeps_file=source.keeps_file(unit),
            rows=raw_rows(source, unit),
        )
        if is_stored:
            setattr(report, counter, getattr(report, counter) + 1)
            return
        if (fresh := _changed_again(source, unit)) is None:
            return  # it is a problem, and the next sync tries again
        unit, checkpoint, event = fresh, None, "created" if known is None else "rewritten"


def _is_unchanged(archive: Archive, source: Source, unit: Unit, known: KnownUnit) -> bool:
    """Return whether only times of a file with a usable checkpoint changed, not its content or side files."""
    if unit.size != known.size:  # for an equal size, `_usable_checkpoint` has compared all bytes
        return False
    return archive.originals.has_same_rows(known.id, raw_rows(source, unit))


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


def _bulk_read(
    archive: Archive, batches: list[Batch], updated: set[SessionKey], index: Callable[[], Index] | None
) -> Iterator[tuple[int, list[Batch]]]:
    """Read batches in several processes, and index the finished ones in rounds.

    Yields the estimated bytes that were read, and the batches that were merged into the archive.
    """
    spooled = SpooledDocuments()
    remaining = sum(batch.estimated_bytes for batch in batches)
    done = 0
    pending: list[Shard] = []  # read, not merged yet
    with (
        TempFolder() as folder,
        archive.units.bulk_merge(),
        nullcontext() if index is None else Indexer(archive, index()) as indexer,
    ):
        try:
            for shard in parallel.read_batches(batches, archive.units.exclusions, folder):
                done += shard.batch.estimated_bytes
                remaining -= shard.batch.estimated_bytes
                pending.append(shard)
                yield shard.batch.estimated_bytes, []
                size = sum(one.documents.stat().st_size for one in pending)
                is_round = spooled.size + size > _round_bytes(
                    spooled.total_size + size, remaining / max(1, done)
                )
                if not is_round and remaining and len(pending) < MAX_MERGED_SHARDS:
                    continue
                shards, pending = pending, []
                merged = _merge(archive, shards, spooled)
                if indexer is not None and is_round:
                    updated.update(archive.derive())
                    try:
                        indexer.catch_up(spooled)
                        if not remaining or spooled.total_size < EARLY_BYTES:
                            indexer.commit()
                    except (OSError, IndexDamagedError):
                        indexer = None  # reading goes on; the update after the sync raises the error
                    spooled = SpooledDocuments(spooled.total_size)
                    malloc_trim()
                yield 0, merged
        finally:
            # Interrupted, or a worker died. The shards read so far are complete.
            rest = _merge(archive, pending, spooled) if pending else []
        yield 0, rest


def _merge(archive: Archive, shards: list[Shard], spooled: SpooledDocuments) -> list[Batch]:
    """Merge shards into the archive. Return the merged batches."""
    try:
        offsets = archive.units.merge_shards([shard.archive for shard in shards])
        malloc_trim()  # frees the page cache of the merge
    except IntegrityError:
        # Another process has read one of the units. Merge the shards one by one; the caller reads the rest.
        if len(shards) > 1:
            return [batch for shard in shards for batch in _merge(archive, [shard], spooled)]
        shards[0].archive.unlink()
        return []
    for shard, offset in zip(shards, offsets, strict=True):
        spooled.add(shard.documents, shard.frames, offset)
        shard.archive.unlink()
    return [shard.batch for shard in shards]


def _round_bytes(total: int, remaining: float) -> int:
    """Return the size of the next round, given the bytes so far and the ratio of remaining to read bytes.

    Early rounds are as large as all before: the newest sessions can be listed and found at once. Rounds get
    smaller near the end, so that little remains to be indexed after the last batch.
    """
    limit = max(MIN_LAST_ROUND_BYTES, int(total * remaining / 2)) if remaining else 0
    return min(max(MIN_ROUND_BYTES, total // ROUND_FRACTION), limit, (total - 1) // 2)
