"""Units: look up known ones, store one in one transaction, merge those that parallel readers stored."""

import os
import sqlite3
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from backscroll.archive.connection import transaction
from backscroll.archive.maintenance import forget
from backscroll.archive.query.originals import Original
from backscroll.archive.storage import raw_files
from backscroll.archive.storage.delta import with_moved_base
from backscroll.archive.storage.raw_files import SEGMENT_BYTES, RawDeltaBase
from backscroll.archive.storage.raw_rows import store_rows
from backscroll.archive.storage.strings import StringTable
from backscroll.archive.write import unit_rows
from backscroll.archive.write.exclusions import Exclusions
from backscroll.archive.write.rewrites import replace_from_original, retain_removed_messages
from backscroll.archive.write.unit_rows import KnownUnit, prefix_hash, stat_or_none
from backscroll.archive.write.unit_writer import MessageObserver, UnitWriter
from backscroll.model.message import Origin
from backscroll.model.problem import Fault, Problem
from backscroll.model.store import Unit, single_session_kinds
from backscroll.model.stream import Checkpoint, Item, RawRow
from backscroll.readers.read_faults import read_fault

RECENTLY_WRITTEN_SECONDS = 600.0  # a file written to more recently may change at any moment
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

    def needs_reading(self, unit: Unit, known: KnownUnit | None, *, full: bool = False) -> bool:
        """Return whether a unit may contain something new that is neither forgotten nor excluded.

        With ``full``, an unchanged fingerprint does not matter.
        """
        if known is None:
            return not forget.is_forgotten_unit(self._db, unit.path, unit.key)
        if known.excluded_by is not None:
            if known.excluded_by != self._exclusions.patterns_hash:
                return True
            if unit.kind in single_session_kinds():
                return False
        return full or not known.is_current(unit.fingerprint)

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
        db, strings, exclusions = self._db, self._strings, self.exclusions
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
                snapshot = _FileSnapshot(path, unit.size) if keeps_file else None
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
                if writer.has_excluded and unit.kind in single_session_kinds():
                    counts.checkpoint = None  # when the exclusion ends, the unit is read from the start
                # Part of a file that grew may have been excluded before. A new unit has no such row.
                if writer.has_excluded or not (is_appended or is_new):
                    unit_rows.set_excluded(
                        db, unit_id, exclusions.patterns_hash if writer.has_excluded else None
                    )
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
                unit_rows.mark_for_retry(
                    db, unit_id, problems or [Problem(Origin(unit.path, "file"), *fault)]
                )
            return False
        return True

    def save_fingerprint(self, unit_id: int, fingerprint: str) -> None:
        """Record that a unit with another fingerprint has the same content."""
        with transaction(self._db):
            self._db.execute("update unit set fingerprint = ? where id = ?", [fingerprint, unit_id])

    def replace_from_original(
        self, original: Original, items: Iterable[Item], file: Path, *, may_be_incomplete: bool
    ) -> bool:
        """Replace what was read from a unit by parsing its original again.

        A source may have become better at reading it. `items` are what it reads now.
        """
        return replace_from_original(self._db, original, items, file, may_be_incomplete=may_be_incomplete)

    def bulk_merge(self) -> AbstractContextManager[None]:
        """Limit SQLite's page cache while shards are merged, to leave memory to the readers."""
        return _page_cache(self._db, SYNC_CACHE_KB)

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


class _UnreadableError(Exception):
    """A unit could not be read, or changed while it was read."""


class _FileSnapshot:
    """Identity, size and time of a file before it is read, to detect that it changed meanwhile.

    Data appended after `size` bytes does not matter to a reader that stops there.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = str(path)
        self._size = size
        self._before = stat_or_none(self._path)
        is_recent = (
            self._before is not None and time.time() - self._before.st_mtime < RECENTLY_WRITTEN_SECONDS
        )
        self._prefix_hash = _prefix_hash_or_none(self._path, size) if is_recent else None

    def is_unchanged(self, *, may_grow: bool) -> bool:
        """Return whether the file is the same, or if `may_grow` still begins with the same bytes."""
        now = stat_or_none(self._path)
        if now is None or self._before is None:
            return False
        if _identity(now) == _identity(self._before):
            return True
        if not may_grow or now.st_ino != self._before.st_ino or now.st_size < self._size:
            return False
        return self._prefix_hash is not None and (
            _prefix_hash_or_none(self._path, self._size) == self._prefix_hash
        )


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _prefix_hash_or_none(path: str, size: int) -> bytes | None:
    try:
        return prefix_hash(Path(path), size)
    except OSError:
        return None


SYNC_CACHE_KB = 8 * 1024  # between merges, while the readers need the memory
# While rows are inserted, most pages of the indexes on hashes stay in memory. Otherwise every row reads one
# page and evicts another that must be written first.
MERGE_CACHE_KB = 24 * 1024
SHARD_CACHE_KB = 256  # a shard is read once, in order
_UNIT_TABLES = (
    "fragment",
    "title_hint",
    "subagent_evidence",
    "problem",
    "source_event",
    "raw_segment",
    "excluded_unit",
    "raw_row",
)
_FRAGMENT_TABLES = (
    "message",
    "message_chunk",
    "message_update",
    "response",
    "edit",
    "subagent_link",
    "reported_usage",
    "last_record",
)
_STRING_COLUMNS = {
    "message": (
        "kind_string_id",
        "tool_string_id",
        "model_string_id",
        "agent_string_id",
        "forked_from_string_id",
        "copied_from_string_id",
    ),
    "response": ("model_string_id", "speed_string_id"),
    "reported_usage": ("model_string_id",),
}


class _Shard(NamedTuple):
    """An attached shard and the offsets that are added to its ids."""

    name: str
    units: int
    fragments: int
    blob_chunks: int


def merge_shards(db: sqlite3.Connection, shards: Sequence[Path]) -> list[int]:
    """Merge up to eight shards, all or none. Return the offset added to each shard's fragment ids.

    A shard is a small archive that a reader process writes. Copying rows is far cheaper than parsing, so one
    writer keeps up with many readers. Several shards are merged together, table by table: indexes on hashes
    are written in random order, and with more rows at once each index page is written fewer times.

    Raise `sqlite3.IntegrityError` if another process stored one of their units, or forgot one of their
    sessions, in the meantime.
    """
    with _page_cache(db, MERGE_CACHE_KB), _attached(db, shards) as names:
        db.execute("begin immediate")
        try:
            found = _offsets(db, names)
            _copy(db, found)
        except BaseException:
            if db.in_transaction:
                db.execute("rollback")
            raise
        db.execute("commit")
    return [shard.fragments for shard in found]


@contextmanager
def _page_cache(db: sqlite3.Connection, size_kb: int) -> Iterator[None]:
    (before,) = db.execute("pragma main.cache_size").fetchone()
    db.execute(f"pragma main.cache_size = -{size_kb}")
    try:
        yield
    finally:
        db.execute(f"pragma main.cache_size = {before}")


@contextmanager
def _attached(db: sqlite3.Connection, shards: Sequence[Path]) -> Iterator[list[str]]:
    """Attach shards and yield their schema names."""
    names: list[str] = []
    try:
        for index, path in enumerate(shards):
            db.execute(f"attach database ? as shard{index}", [str(path)])
            names.append(f"shard{index}")
            db.execute(f"pragma shard{index}.cache_size = -{SHARD_CACHE_KB}")
        db.execute("pragma foreign_keys = off")  # rows that refer to each other are copied together
        yield names
    finally:
        db.execute("pragma foreign_keys = on")
        for name in names:
            db.execute(f"detach database {name}")


def _offsets(db: sqlite3.Connection, names: Sequence[str]) -> list[_Shard]:
    """Assign each shard a range of ids after those of the archive and of the shards before it."""
    found: list[_Shard] = []
    units, fragments, blob_chunks = _max_ids(db, "main")
    for name in names:
        forgotten = (
            f"select 1 from main.forgotten_session s join {name}.fragment f on f.platform = s.platform"  # noqa: S608
            " and s.external_id = coalesce(f.parent_external_id, f.external_id) limit 1"
        )
        if db.execute(forgotten).fetchone() is not None:
            raise sqlite3.IntegrityError("a session was forgotten while it was read")
        found.append(_Shard(name, units, fragments, blob_chunks))
        more = _max_ids(db, name)
        units, fragments, blob_chunks = units + more[0], fragments + more[1], blob_chunks + more[2]
    return found


def _max_ids(db: sqlite3.Connection, schema: str) -> tuple[int, int, int]:
    """Return the greatest ids of units, fragments and blob chunks."""
    units, fragments, blob_chunks = (
        int(db.execute(f"select coalesce(max(id), 0) from {schema}.{table}").fetchone()[0])  # noqa: S608
        for table in ("unit", "fragment", "blob_chunk")
    )
    return units, fragments, blob_chunks


def _copy(db: sqlite3.Connection, shards: Sequence[_Shard]) -> None:
    for shard in shards:
        _map_strings(db, shard.name)
    for table in ("unit", "blob_chunk", *_UNIT_TABLES, *_FRAGMENT_TABLES):
        columns = [name for _, name, *_ in db.execute(f"pragma main.table_info({table})")]
        for shard in shards:
            changed = _changed_columns(table, shard)
            values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
            # A conflict rolls back the whole merge, so SQLite needs no statement journal.
            db.execute(
                f"insert or rollback into main.{table} select {values} from {shard.name}.{table}"  # noqa: S608
            )


def _changed_columns(table: str, shard: _Shard) -> dict[str, str]:
    """Return the SQL expressions of the columns that change when a row is copied."""
    if table == "unit":
        return {"id": f"id + {shard.units}"}
    if table == "blob_chunk":
        return {"id": f"id + {shard.blob_chunks}"}
    if table in _FRAGMENT_TABLES:
        new_id = f"select new_id from string_map_{shard.name} where old_id ="  # noqa: S608 - names are ours
        strings = {
            name: f"iif({name} is null, null, ({new_id} {name}))" for name in _STRING_COLUMNS.get(table, ())
        }
        return {"fragment_id": f"fragment_id + {shard.fragments}", **strings}
    changed = {"unit_id": f"unit_id + {shard.units}"}
    if table == "fragment":
        changed["id"] = f"id + {shard.fragments}"
    elif table in ("source_event", "raw_row"):
        changed |= {"id": "null", "blob_chunk_id": f"blob_chunk_id + {shard.blob_chunks}"}
    elif table == "raw_segment":
        changed["delta_base_fragment_id"] = f"delta_base_fragment_id + {shard.fragments}"
    return changed


def _map_strings(db: sqlite3.Connection, shard: str) -> None:
    """Add a shard's strings to the archive and map their ids in a temporary table."""
    db.execute(f"insert or ignore into main.string (text) select text from {shard}.string")  # noqa: S608
    db.execute(
        f"create temp table if not exists string_map_{shard} (old_id integer primary key, new_id integer)"
    )
    db.execute(f"delete from string_map_{shard}")  # noqa: S608
    db.execute(
        f"insert into string_map_{shard} select s.id, m.id"  # noqa: S608
        f" from {shard}.string s join main.string m on m.text = s.text"
    )


# The archive of a backup


def merge_archive(db: sqlite3.Connection, other: Path) -> None:
    """Merge a private copy of another archive, which has only sessions that this one does not have.

    A unit that both have, such as a prompt log, keeps its originals; what the other one read from it is
    added. The caller opens no transaction, and derives sessions afterwards.
    """
    db.create_function("with_moved_base", 2, with_moved_base, deterministic=True)
    with _attached(db, [other]) as names:
        (name,) = names
        db.execute("begin immediate")
        try:
            shard = _Shard(name, *_max_ids(db, "main"))
            _map_strings(db, name)
            _map_units(db, shard)
            for table in ("unit", "blob_chunk", *_UNIT_TABLES, *_FRAGMENT_TABLES):
                _merge_table(db, table, shard)
            db.execute(f"insert or ignore into main.hook_event select * from {name}.hook_event")  # noqa: S608
        except BaseException:
            if db.in_transaction:
                db.execute("rollback")
            raise
        db.execute("commit")


def _map_units(db: sqlite3.Connection, shard: _Shard) -> None:
    """Fill a temporary table with the new id of each unit: that of one at the same place, or a new one."""
    db.execute(
        "create temp table if not exists unit_map"
        " (old_id integer primary key, new_id integer, is_new integer)"
    )
    db.execute("delete from unit_map")
    db.execute(
        "insert into unit_map select o.id, coalesce(m.id, o.id + ?), m.id is null"  # noqa: S608
        f" from {shard.name}.unit o left join main.unit m on m.path = o.path and m.key = o.key",
        [shard.units],
    )


def _merge_table(db: sqlite3.Connection, table: str, shard: _Shard) -> None:
    columns = [name for _, name, *_ in db.execute(f"pragma main.table_info({table})")]
    changed = _changed_columns(table, shard)
    new_unit = "(select new_id from unit_map where old_id = {})"
    for name in ("unit_id", "delta_base_unit_id"):
        changed[name] = new_unit.format(name)
    changed["delta_base_fragment_id"] = f"delta_base_fragment_id + {shard.fragments}"
    if table == "message_chunk":
        changed["body"] = f"with_moved_base(body, {shard.fragments})"
    if table == "fragment":
        changed |= {"is_derived": "0", "compared_count": "0"}
    values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
    condition = ""
    if table == "unit":
        condition = " where id in (select old_id from unit_map where is_new)"
    elif table in _UNIT_TABLES and table not in ("fragment", "title_hint", "subagent_evidence"):
        condition = " where unit_id in (select old_id from unit_map where is_new)"
    db.execute(f"insert into main.{table} select {values} from {shard.name}.{table}{condition}")  # noqa: S608
