"""Bring the archive up to date: read what changed, keep what vanished."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.ingest.changes import differences
from backscroll.model.sync_report import SyncReport
from backscroll.sources.protocols import PathLookup, close, raw_rows

if TYPE_CHECKING:
    from backscroll.archive import Archive
    from backscroll.archive.session_key import SessionKey
    from backscroll.archive.write.units import KnownUnit
    from backscroll.index import Index
    from backscroll.ingest.index_documents import Ready
    from backscroll.ingest.parallel import Batch, Shard
    from backscroll.model import Checkpoint, Unit
    from backscroll.sources import Source

__all__ = ["Progress", "sync"]

Progress = Callable[[int, int], None]  # bytes or rows read, and how many there are


_TRIES = 3  # times that a file is read anew when it changes meanwhile


_TOGETHER = 8  # shards that are merged in one transaction at most
_ROUND = 24 * 1024 * 1024  # bytes of entries that are indexed together at least
_SMALL_ROUND = 8 * 1024 * 1024  # and towards the end
_ROUNDS = 16  # and this part of all that there were: what is derived costs more with all that is there


class _Work:
    def __init__(self, source: Source, unit: Unit, known: KnownUnit | None) -> None:
        self.source = source
        self.unit = unit
        self.known = known


def sync(
    archive: Archive,
    roots: Iterable[tuple[Source, Path]],
    progress: Progress | None = None,
    *,
    paths: Collection[str] | None = None,
    index: Callable[[], Index] | None = None,
) -> SyncReport:
    """Read every unit that changed since it was last read, and derive what that changes.

    Where changes were noticed at some ``paths``, nothing else is looked at. An ``index`` gets the words of
    much that is new while it is read; whatever the archive says it lacks afterwards is for `indexing.update`.
    """
    report = SyncReport()
    began = datetime.now(UTC)
    work: list[_Work] = []
    markers: list[_Work] = []
    vanished: list[int] = []
    used: list[Source] = []
    for source, root in roots:
        if not root.is_dir():
            continue
        used.append(source)
        report.roots.append(str(root))
        found = differences(archive, source, root, paths)
        report.units += found.units
        work += [_Work(source, unit, known) for unit, known in found.changed]
        markers += [_Work(source, unit, known) for unit, known in found.change_markers]
        vanished += found.vanished
    report.vanished = len(vanished)
    if vanished:
        archive.units.mark_gone(vanished)
    total = sum(one.unit.size for one in work)
    done = 0
    told: set[SessionKey] = set()  # brought up to date
    try:
        for size in _read_all(archive, work, report, told, index) if work else ():
            done = min(done + size, total)  # what somebody else took in meanwhile is looked at again
            if progress is not None:
                progress(done, total)
        for one in markers:
            _read(archive, one, report)
    finally:
        # What was read is whole; its sessions are told even when the rest was interrupted.
        told |= archive.derive()
        report.sessions = len(told)
        report.problems = archive.count_problems(began)
        for source in used:
            close(source)
    return report


def _read_all(
    archive: Archive,
    work: list[_Work],
    report: SyncReport,
    told: set[SessionKey],
    index: Callable[[], Index] | None,
) -> Iterator[int]:
    """Read what is new side by side when there is much of it, the rest one by one; the sizes of it."""
    from backscroll.ingest.parallel import batches

    new = {(one.unit.path, one.unit.key): one for one in work if one.known is None}
    rest = [one for one in work if one.known is not None]
    shared = batches([one.unit for one in new.values()])
    for size, taken in _read_side_by_side(archive, shared, told, index):
        for unit in (unit for batch in taken for unit in batch.units):
            report.new += 1
            del new[unit.path, unit.key]
        yield size
    for one in [*new.values(), *rest]:
        _read(archive, one, report)
        yield one.unit.size


def _read_side_by_side(
    archive: Archive, work: list[Batch], told: set[SessionKey], index: Callable[[], Index] | None
) -> Iterator[tuple[int, list[Batch]]]:
    """Read much in several processes, and index it round by round while they go on.

    Tells how much was read, and what was taken in.
    """
    if not work:
        return
    from backscroll.index import IndexDamagedError  # these are loaded only when there is much to read
    from backscroll.ingest.index_documents import Ready
    from backscroll.ingest.indexer import Indexing
    from backscroll.ingest.malloc import give_back_now
    from backscroll.ingest.parallel import read_batches
    from backscroll.readers.temp_folder import TempFolder

    ready = Ready()
    left = sum(batch.size for batch in work)
    done = 0
    held: list[Shard] = []  # read, and not yet in the archive
    with (
        TempFolder() as folder,
        archive.units.bulk_merge(),
        nullcontext() if index is None else Indexing(archive, index()) as indexing,
    ):
        try:
            for shard in read_batches(work, archive.units.exclusions, folder):
                done += shard.batch.size
                left -= shard.batch.size
                held.append(shard)
                yield shard.batch.size, []
                size = sum(one.entries.stat().st_size for one in held)
                is_round = ready.size + size > _round(ready.ever + size, left / max(1, done))
                if not is_round and left and len(held) < _TOGETHER:
                    continue
                together, held = held, []
                taken = _take_in(archive, together, ready)
                if indexing is not None and is_round:
                    told.update(archive.derive())
                    try:
                        indexing.catch_up(ready)
                        if not left:
                            indexing.commit()
                    except (OSError, IndexDamagedError):
                        indexing = None  # reading goes on; whoever updates the index afterwards is told
                    ready = Ready(ready.ever)
                    give_back_now()
                yield 0, taken
        finally:
            # It was interrupted, or those who read have died: what they have read is whole.
            rest = _take_in(archive, held, ready) if held else []
        yield 0, rest


def _take_in(archive: Archive, shards: list[Shard], ready: Ready) -> list[Batch]:
    """Merge what was read into the archive; the batches of which that is done."""
    from sqlite3 import IntegrityError

    from backscroll.ingest.malloc import give_back_now

    try:
        offsets = archive.units.merge_shards([shard.archive for shard in shards])
        give_back_now()  # the pages that were at hand for it
    except IntegrityError:
        # Somebody else read one of these in the meantime; they are looked at again, the others taken alone.
        if len(shards) > 1:
            return [batch for shard in shards for batch in _take_in(archive, [shard], ready)]
        shards[0].archive.unlink()
        return []
    for shard, offset in zip(shards, offsets, strict=True):
        ready.take(shard.entries, shard.frames, offset)
        shard.archive.unlink()
    return [shard.batch for shard in shards]


def _round(ever: int, left: float) -> int:
    """How many bytes of entries are indexed together, after so many; ``left`` is what is to come, to that.

    Towards the end they are fewer and fewer, so that little is to be done when the last has been read.
    """
    return min(max(_ROUND, ever // _ROUNDS), max(_SMALL_ROUND, int(ever * left / 2)) if left else 0)


def _read(archive: Archive, work: _Work, report: SyncReport) -> None:
    from backscroll.ingest.parallel import keeps_file

    unit, known = work.unit, work.known
    mark = _usable_mark(archive, unit, known)
    if known is None:
        event = "created"
        report.new += 1
    elif known.is_gone:
        event = "returned"
        report.came_back += 1
    elif mark is not None:
        event = "grew"
        report.grew += 1
    else:
        event = "rewritten"
        report.rewritten += 1
    for _ in range(_TRIES):
        is_read = archive.units.put(
            unit,
            work.source.platform,
            work.source.read(unit, mark),
            event=event,
            is_appended=mark is not None,
            keeps_file=keeps_file(unit),
            rows=raw_rows(work.source, unit),
        )
        if is_read or (fresh := _met_again(work.source, unit)) is None:
            return
        unit, mark, event = fresh, None, "created" if known is None else "rewritten"


def _met_again(source: Source, unit: Unit) -> Unit | None:
    """A unit as it is now; None when it is as it was, or gone."""
    if not isinstance(source, PathLookup):
        return None
    for fresh in source.units_at(Path(unit.root), [unit.path]) or ():
        if (fresh.path, fresh.key) == (unit.path, unit.key) and fresh.fingerprint != unit.fingerprint:
            return fresh
    return None


def _usable_mark(archive: Archive, unit: Unit, known: KnownUnit | None) -> Checkpoint | None:
    """Where reading can go on: only in a file that still holds what was read, and more."""
    if known is None or known.is_gone or known.needs_retry or unit.size < known.size:
        return None
    mark = archive.units.checkpoint(known)
    if mark is None or mark.offset > unit.size:
        return None
    if unit.size == known.size and not archive.originals.is_same_file(known.id, Path(unit.path)):
        return None  # written to, and not at its end
    return mark if archive.units.is_prefix_unchanged(known, unit, mark) else None
