"""A unit is recorded with all that was read from it, or not at all."""

import sqlite3
import sys
from collections.abc import Iterable
from pathlib import Path

from backscroll.archive.connection import transaction
from backscroll.archive.maintenance import forget
from backscroll.archive.storage import raw_files
from backscroll.archive.storage.delta_raw import Told
from backscroll.archive.storage.raw_rows import keep_rows
from backscroll.archive.storage.strings import Words
from backscroll.archive.write import units
from backscroll.archive.write.exclusions import ALONE, Exclusions
from backscroll.archive.write.file_snapshot import Stillness
from backscroll.archive.write.observer import Listener
from backscroll.archive.write.superseded import settle_former
from backscroll.archive.write.unit_writer import UnitWriter
from backscroll.model import Fault, Item, Origin, Problem, RawRow, Unit

__all__ = ["put"]

_MOVED = "changed while it was read; the next sync reads it again"


class _UnreadError(Exception):
    """A unit could not be read at all, or not as it was at any one moment."""


def put(
    db: sqlite3.Connection,
    exclusions: Exclusions,
    unit: Unit,
    platform: str,
    items: Iterable[Item],
    *,
    event: str,
    is_appended: bool,
    keeps_file: bool,
    listener: Listener | None,
    rows: Iterable[RawRow],
    words: Words,
) -> bool:
    """Record a unit; see `Archive.put`."""
    try:
        with transaction(db):
            if forget.is_forgotten(db, unit.path, unit.key):
                return True
            number, is_new = units.register(db, unit, platform)
            if is_appended:
                units.mend_tail(db, number)
            elif not is_new:
                units.set_aside(db, number)
            told = Told(db, unit.path)
            writer = UnitWriter(
                db,
                number,
                platform,
                is_appended=is_appended,
                exclusions=exclusions,
                listener=listener,
                told=told if keeps_file else None,
                words=words,
            )
            path = Path(unit.path)
            stillness = Stillness(path, unit.size) if keeps_file else None
            writer.write(items)
            if not writer.was_read:
                raise _UnreadError
            if writer.was_forgotten and forget.forget_rest(db, number, unit.kind):
                return True
            if not is_new and settle_former(db, number, is_appended=is_appended) and not is_appended:
                event = "overwritten"
            whole = b""
            if keeps_file and not writer.was_forgotten and not writer.was_excluded:
                end = unit.size or sys.maxsize
                whole = writer.tally.whole if is_new else b""
                whole = raw_files.keep(
                    db, number, path, told, is_new=is_new, is_appended=is_appended, end=end, whole=whole
                )
            if writer.was_excluded and unit.kind in ALONE:
                writer.tally.mark = None  # when it is not excluded any more, it is read from the start
            # Of a file that grew, something may have been before; of one never met, nothing.
            if writer.was_excluded or not (is_appended or is_new):
                units.exclude(db, number, exclusions.digest if writer.was_excluded else None)
            is_retried = False
            if not writer.was_forgotten and not writer.was_excluded:
                is_retried = not keep_rows(db, number, rows, is_new=is_new)
            units.record(
                db,
                number,
                unit,
                writer.tally,
                event=event,
                is_appended=is_appended,
                is_retried=is_retried,
                told=told,
                whole=whole,
            )
            if stillness is not None and not stillness.holds(may_grow=writer.tally.mark is not None):
                raise _UnreadError
    except (_UnreadError, OSError) as error:
        # Locked, unreadable or changing for now: what it told before stands, and it is tried again.
        words.start_again()
        fault = Fault("changed-while-reading", _MOVED)
        if isinstance(error, OSError):
            fault = Fault("unreadable-file", f"cannot be read: {error.strerror or error}")
        with transaction(db):
            number, _ = units.register(db, unit, platform)
            problems = [] if writer.was_read else writer.problems
            units.retry(db, number, problems or [Problem(Origin(unit.path, "file"), *fault)])
        return False
    return True
