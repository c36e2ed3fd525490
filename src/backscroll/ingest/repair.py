"""Repair a damaged archive: keep what can be read, read the rest again, and list what is lost."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.maintenance.repair import PartialFragment, Salvage, SessionBefore, salvage
from backscroll.archive.sync_state import sync_lock
from backscroll.errors import ArchiveError, SessionNotFoundError
from backscroll.ingest.originals import parse_originals
from backscroll.ingest.sync import sync
from backscroll.model.problem import LostMessages, Repaired
from backscroll.model.stream import Item, RecordCounts
from backscroll.stores.lookup import find_session
from backscroll.stores.stores import Stores

_WORK_FILE = "archive.repaired.db"
_SUFFIXES = ("-wal", "-shm")
_REASON = "some messages were damaged in the archive"

Progress = Callable[[int, int], None]


def repair(stores: Stores, progress: Progress | None = None) -> Repaired:
    """Replace a damaged archive by what can be read of it. Raises `ArchiveError` if there is none.

    The new archive replaces the damaged one at once, so that a kill leaves one of them. The damaged file is
    kept beside it. If a repair is interrupted later, the next sync continues it.
    """
    path = stores.archive_path
    if not path.is_file():
        raise ArchiveError(f"There is no archive at {path}.", path, hint="Run 'backscroll sync'.")
    stores.close()
    with sync_lock(path, None):
        work_file = path.with_name(_WORK_FILE)
        for suffix in ("", *_SUFFIXES):
            work_file.with_name(work_file.name + suffix).unlink(missing_ok=True)
        found = salvage(path, work_file)
        _store_partial(work_file, found)
        kept = _swap(path, work_file)
    archive = stores.archive
    archive.sync_state.mark_incomplete()
    archive.hooks.events.mark_unread()
    archive.invalidate_derived()
    stores.index.index.rebuild()
    sync(stores, progress)
    unread = {unit_id for unit_id, _, _ in archive.maintenance.units_to_read_again(found.units)}
    # A sync keeps a fragment with the same messages, although other rows of it may be lost.
    parsed_again = sum(parse_originals(archive, only=(unread | found.unsure) - found.originals))
    archive.maintenance.delete_sessions_without_messages()
    sync(stores, progress)
    return Repaired(
        damaged_file=str(kept),
        rows=found.rows,
        damaged_tables=tuple(found.damaged_tables),
        read_again=len(found.units) - len(unread),
        parsed_again=parsed_again,
        lost=tuple(_lost_messages(archive, found.sessions)),
        lost_originals=len(unread & found.originals),
    )


def _swap(path: Path, new: Path) -> Path:
    """Put the new archive in the place of the damaged one. Return where that is kept."""
    kept = path.with_name(f"archive.damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.db")
    for suffix in _SUFFIXES:  # a write-ahead log must not be applied to the new file
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).replace(kept.with_name(kept.name + suffix))
    try:
        os.link(path, kept)
    except OSError:  # a file system without hard links
        path.rename(kept)
    new.replace(path)
    return kept


def _store_partial(path: Path, found: Salvage) -> None:
    """Store the readable messages of damaged fragments. If the rest can be read again, it replaces them."""
    with closing(Archive(path)) as archive:
        archive.maintenance.mark_to_read_again(found.units)
        for unit_id, unit, platform in archive.maintenance.units_to_read_again(found.fragments):
            archive.units.put(unit, platform, _partial_items(found.fragments[unit_id]), event="reparsed")
        archive.maintenance.mark_to_read_again(found.units)


def _partial_items(fragments: Iterable[PartialFragment]) -> Iterator[Item]:
    for one in fragments:
        if one.messages:
            yield one.opening
            yield from one.messages
            yield replace(one.closing, completeness="partial", reasons=(*one.closing.reasons, _REASON))
    yield RecordCounts()


def _lost_messages(archive: Archive, before: Iterable[SessionBefore]) -> Iterator[LostMessages]:
    for session in before:
        try:
            count = find_session(archive, session.ref).message_count
        except SessionNotFoundError:
            yield LostMessages(session.ref, session.title, session.message_count, is_lost=True)
            continue
        if count < session.message_count:
            yield LostMessages(session.ref, session.title, session.message_count - count, is_lost=False)
