"""Store one unit and everything that was read from it in one transaction."""

import sqlite3
import sys
from collections.abc import Iterable
from pathlib import Path

from backscroll.archive.connection import transaction
from backscroll.archive.maintenance import forget
from backscroll.archive.storage import raw_files
from backscroll.archive.storage.delta_raw import RawDeltaBase
from backscroll.archive.storage.raw_rows import store_rows
from backscroll.archive.storage.strings import StringTable
from backscroll.archive.write import unit_rows
from backscroll.archive.write.exclusions import SINGLE_SESSION_KINDS, Exclusions
from backscroll.archive.write.file_snapshot import FileSnapshot
from backscroll.archive.write.fragment_writer import MessageObserver
from backscroll.archive.write.superseded import retain_removed_messages
from backscroll.archive.write.unit_writer import UnitWriter
from backscroll.model import Fault, Item, Origin, Problem, RawRow, Unit
from backscroll.readers.read_faults import read_fault

__all__ = ["put_unit"]


class _UnreadableError(Exception):
    """A unit could not be read, or changed while it was read."""


def put_unit(
    db: sqlite3.Connection,
    exclusions: Exclusions,
    strings: StringTable,
    unit: Unit,
    platform: str,
    items: Iterable[Item],
    *,
    event: str,
    is_appended: bool,
    keeps_file: bool,
    observer: MessageObserver | None,
    rows: Iterable[RawRow],
) -> bool:
    """Store a unit; see `UnitStore.put`."""
    try:
        with transaction(db):
            if forget.is_forgotten_unit(db, unit.path, unit.key):
                return True
            unit_id, is_new = unit_rows.register_unit(db, unit, platform)
            if is_appended:
                unit_rows.discard_truncated_line(db, unit_id)
            elif not is_new:
                unit_rows.mark_superseded(db, unit_id)
            delta_base = RawDeltaBase(db, unit.path)
            writer = UnitWriter(
                db,
                unit_id,
                platform,
                is_appended=is_appended,
                exclusions=exclusions,
                observer=observer,
                delta_base=delta_base if keeps_file else None,
                strings=strings,
            )
            path = Path(unit.path)
            snapshot = FileSnapshot(path, unit.size) if keeps_file else None
            writer.write(items)
            if not writer.was_read:
                raise _UnreadableError
            if writer.has_forgotten and forget.delete_forgotten_originals(db, unit_id, unit.kind):
                return True
            counts = writer.record_counts
            is_storable = not writer.has_forgotten and not writer.has_excluded
            if not is_new:
                removed = retain_removed_messages(db, unit_id, is_appended=is_appended)
                if removed and not is_appended:
                    event = "overwritten"
            content = b""
            if keeps_file and is_storable:
                content = raw_files.store_file(
                    db,
                    unit_id,
                    path,
                    delta_base,
                    is_new=is_new,
                    is_appended=is_appended,
                    end=unit.size or sys.maxsize,
                    content=counts.file_content if is_new else b"",
                )
            if writer.has_excluded and unit.kind in SINGLE_SESSION_KINDS:
                counts.checkpoint = None  # when the exclusion ends, the unit is read from the start
            # Part of a file that grew may have been excluded before. A new unit has no such row.
            if writer.has_excluded or not (is_appended or is_new):
                unit_rows.set_excluded(db, unit_id, exclusions.patterns_hash if writer.has_excluded else None)
            needs_retry = is_storable and not store_rows(db, unit_id, rows, is_new=is_new)
            unit_rows.save_unit(
                db,
                unit_id,
                unit,
                counts,
                event=event,
                is_appended=is_appended,
                needs_retry=needs_retry,
                delta_base=delta_base,
                content=content,
            )
            if snapshot is not None and not snapshot.is_unchanged(may_grow=counts.checkpoint is not None):
                raise _UnreadableError
    except (_UnreadableError, OSError) as error:
        # Locked, unreadable or changing: what was stored before stays, and the next sync tries again.
        strings.reset()
        fault = Fault("changed-while-reading", "changed while it was read; the next sync reads it again")
        if isinstance(error, OSError):
            fault = read_fault(error)
        with transaction(db):
            unit_id, _ = unit_rows.register_unit(db, unit, platform)
            problems = [] if writer.was_read else writer.problems
            unit_rows.mark_for_retry(db, unit_id, problems or [Problem(Origin(unit.path, "file"), *fault)])
        return False
    return True
