"""Known units, and storing new ones."""

import os
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

from backscroll.archive.connection import transaction
from backscroll.archive.maintenance import forget
from backscroll.archive.storage.originals import Original
from backscroll.archive.storage.raw_files import SEGMENT_BYTES
from backscroll.archive.storage.strings import StringTable
from backscroll.archive.write import unit_rows
from backscroll.archive.write.exclusions import SINGLE_SESSION_KINDS, Exclusions
from backscroll.archive.write.fragment_writer import MessageObserver
from backscroll.archive.write.put_unit import put_unit
from backscroll.archive.write.reparse import replace_from_original
from backscroll.archive.write.shard_merge import merge_shards, reduced_page_cache
from backscroll.archive.write.unit_rows import KnownUnit
from backscroll.model import Checkpoint, Item, RawRow, Unit

__all__ = ["UnitStore"]

MAX_SINGLE_PATH_QUERIES = 500  # above this, one query reads all units of the root


class UnitStore:
    """Units of the archive: look up, store, merge."""

    def __init__(self, db: sqlite3.Connection, exclusions: Exclusions, *, is_shard: bool) -> None:
        self._db = db
        self._exclusions = exclusions
        self._is_shard = is_shard
        self._strings: StringTable | None = None  # kept between units of a shard, which has a single writer

    def known(
        self, source: str, root: Path, paths: Collection[str] | None = None
    ) -> dict[tuple[str, str], KnownUnit]:
        """Return every unit ever read below a root, or only those at some paths, by path and key."""
        query = (
            "select path, key, id, fingerprint, size, is_gone, needs_retry, coalesce(prefix_hash, x''),"
            " patterns_hash from unit left join excluded_unit on unit_id = id where source = ? and root = ?"
        )
        values = [source, str(root)]
        if paths is None or len(paths) > MAX_SINGLE_PATH_QUERIES:
            rows = self._db.execute(query, values).fetchall()
        else:
            rows = [
                row for path in paths for row in self._db.execute(f"{query} and path = ?", [*values, path])
            ]
        return {
            (path, key): KnownUnit(id_, fingerprint, size, bool(is_gone), bool(needs_retry), prefix, patterns)
            for path, key, id_, fingerprint, size, is_gone, needs_retry, prefix, patterns in rows
        }

    def below(self, source: str, root: Path, folder: str) -> set[str]:
        """Return the paths of current units at a path or in the folder of that name."""
        query = "select distinct path from unit where source = ? and root = ? and not is_gone and path"
        values = [source, str(root)]
        own = self._db.execute(f"{query} = ?", [*values, folder])
        bounds = [f"{folder}{os.sep}", f"{folder}{chr(ord(os.sep) + 1)}"]
        below = self._db.execute(f"{query} > ? and path < ?", [*values, *bounds])
        return {path for (path,) in (*own, *below)}

    def needs_reading(self, unit: Unit, known: KnownUnit | None) -> bool:
        """Return whether a unit may contain something new that is neither forgotten nor excluded."""
        if known is None:
            return not forget.is_forgotten_unit(self._db, unit.path, unit.key)
        if known.excluded_by is not None:
            if known.excluded_by != self._exclusions.patterns_hash:
                return True
            if unit.kind in SINGLE_SESSION_KINDS:
                return False
        return not known.is_current(unit.fingerprint)

    def checkpoint(self, known: KnownUnit) -> Checkpoint | None:
        """Return how far a unit was read; None if part of it was excluded by other patterns than now."""
        if known.excluded_by is not None and known.excluded_by != self._exclusions.patterns_hash:
            return None
        return unit_rows.load_checkpoint(self._db, known.id)

    def is_prefix_unchanged(self, known: KnownUnit, unit: Unit, checkpoint: Checkpoint) -> bool:
        """Return whether a file is unchanged up to a checkpoint."""
        path = Path(unit.path)
        try:
            return unit_rows.is_prefix_unchanged(known, path, checkpoint.offset) and (
                self._is_end_unchanged(known.id, path, checkpoint.offset)
            )
        except OSError:
            return False

    def _is_end_unchanged(self, unit_id: int, file: Path, end: int) -> bool:
        """Return whether the last segment's worth of bytes before `end` equals what is stored."""
        segments = self._db.execute(
            "select offset, size, sha256 from raw_segment where unit_id = :unit and version ="
            " (select max(version) from raw_segment where unit_id = :unit) and offset + size <= :end"
            " order by offset desc",
            {"unit": unit_id, "end": end},
        )
        with file.open("rb") as opened:
            for offset, size, digest in segments:
                opened.seek(offset)
                if sha256(opened.read(size)).digest() != digest:
                    return False
                if end - offset >= SEGMENT_BYTES:
                    break
        return True

    def put(
        self,
        unit: Unit,
        platform: str,
        items: Iterable[Item],
        *,
        event: str,
        is_appended: bool = False,
        keeps_file: bool = False,
        observer: MessageObserver | None = None,
        rows: Iterable[RawRow] = (),
    ) -> bool:
        """Store a unit and everything read from it in one transaction; `rows` are stored as they are.

        Return False if the unit could not be read or changed while it was read. The next sync then reads it
        again, even if its fingerprint is unchanged.
        """
        if self._strings is None or not self._is_shard:
            self._strings = StringTable(self._db)
        return put_unit(
            self._db,
            self.exclusions,
            self._strings,
            unit,
            platform,
            items,
            event=event,
            is_appended=is_appended,
            keeps_file=keeps_file,
            observer=observer,
            rows=rows,
        )

    def replace_from_original(
        self, original: Original, items: Iterable[Item], file: Path, *, may_be_incomplete: bool
    ) -> bool:
        """Replace what was read from a unit by parsing its original again; see `reparse`."""
        return replace_from_original(self._db, original, items, file, may_be_incomplete=may_be_incomplete)

    def bulk_merge(self) -> AbstractContextManager[None]:
        """Limit SQLite's page cache while shards are merged, to leave memory to the readers."""
        return reduced_page_cache(self._db)

    def merge_shards(self, shards: Sequence[Path]) -> list[int]:
        """Merge shards that other processes wrote. Return the offset added to each shard's fragment ids."""
        return merge_shards(self._db, shards)

    def fragment_ids(self) -> set[int]:
        """Return the ids of all fragments."""
        return {id_ for (id_,) in self._db.execute("select id from fragment")}

    def mark_gone(self, unit_ids: Iterable[int]) -> int:
        """Record that units vanished, and return how many. What was read from them stays.

        A unit that could never be read is deleted and not counted.
        """
        count = 0
        with transaction(self._db):
            for unit_id in unit_ids:
                deleted = self._db.execute("delete from unit where id = ? and read_at is null", [unit_id])
                if deleted.rowcount:
                    continue
                count += 1
                self._db.execute("update unit set is_gone = 1 where id = ?", [unit_id])
                self._db.execute("update fragment set is_derived = 0 where unit_id = ?", [unit_id])
                unit_rows.add_event(self._db, unit_id, "vanished")
        return count

    @property
    def exclusions(self) -> Exclusions:
        """Excluded workspaces and forgotten sessions."""
        if self._is_shard:  # a shard has no list of its own; its parent process passes one
            return self._exclusions
        return Exclusions(
            self._exclusions.forgotten | forget.forgotten_sessions(self._db), self._exclusions.patterns
        )
