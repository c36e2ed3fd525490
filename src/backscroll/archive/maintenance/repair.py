"""Repair a damaged archive: copy every readable row into a new file, then remove what does not fit together.

SQLite cannot read past a damaged page of a table. The scan continues behind it: the first readable key is
found by doubling the distance, then by bisection.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from backscroll.archive.connection import connect, decode_errors, transaction
from backscroll.archive.derive.fragments import decode_closing
from backscroll.archive.maintenance.maintenance import verify_fragment
from backscroll.archive.storage.codec import compress, decode_messages, recompress_chunk
from backscroll.archive.storage.delta import BodyReader
from backscroll.archive.storage.raw_rows import damaged_rows
from backscroll.model.message import Message
from backscroll.model.stream import Closing, Opening

_SESSIONS = (
    "select source || ':' || external_id, title, message_count, updated_at from conversations"
    " where visibility in ('listed', 'archived') union all"
    " select source || ':' || agent_id, title, message_count, updated_at from subagent"
    " where visibility in ('listed', 'archived') order by updated_at desc"
)
# Lost rows of these tables are noticed, or they are derived from others.
_CHECKED_OR_DERIVED = {
    *("cursor_sessions", "conversations", "subagent", "message", "message_chunk", "raw_segment", "raw_row"),
    *("blob_chunk", "index_queue", "folder_fingerprint", "edit_scan", "git_commit", "commit_link", "price"),
    *("tag", "star", "note", "user_title", "source_event", "migration"),
}
_MIN_KEY, _MAX_STEP = -(2**63), 2**63
_Key = tuple[Any, ...]


class PartialFragment(Struct):
    """The readable messages of a damaged fragment."""

    opening: Opening
    closing: Closing
    messages: list[Message]


class SessionBefore(Struct, frozen=True):
    """A session that the damaged archive listed."""

    ref: str
    title: str | None
    message_count: int


class Salvage(Struct):
    """What was copied to the new file, and what is not in it."""

    rows: int = 0
    sessions: list[SessionBefore] = []
    damaged_tables: list[str] = []  # in which rows could not be read
    fragments: dict[int, list[PartialFragment]] = {}  # by unit; they are not in the new file
    originals: set[int] = set()  # units whose archived files or rows are not complete
    unsure: set[int] = set()  # units that may lack fragments

    @property
    def units(self) -> set[int]:
        """The units that must be read again."""
        return self.originals | self.fragments.keys() | self.unsure


def salvage(damaged: Path, target: Path) -> Salvage:
    """Copy the readable rows of an archive to a new file, without the damaged ones. Nothing else changes."""
    found = Salvage()
    with closing(connect(target)) as new:
        new.execute("pragma foreign_keys = off")
        with closing(_open_read_only(damaged)) as old, transaction(new):
            triggers = new.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
            for name, _ in triggers:
                new.execute(f"drop trigger {name}")
            for table in _tables(new):
                found.rows += _copy_table(old, new, table, found.damaged_tables)
            for _, sql in triggers:
                new.execute(sql)
        found.sessions = [SessionBefore(*row[:3]) for row in new.execute(_SESSIONS)]
        with transaction(new):
            _remove_inconsistent(new, found)
            new.execute("delete from folder_fingerprint")
            new.execute("pragma foreign_keys = on")
    return found


def _open_read_only(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    db.text_factory = _Text
    return db


class _Text(bytes):
    """A text that may not be valid UTF-8."""


def _tables(db: sqlite3.Connection) -> list[str]:
    """Return the tables, those that others refer to first."""
    query = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by rowid"
    return [name for (name,) in db.execute(query)]


def _copy_table(old: sqlite3.Connection, new: sqlite3.Connection, table: str, damaged: list[str]) -> int:
    """Copy the readable rows of a table. Return their number."""
    columns = [(name, key) for _, name, _, _, _, key in new.execute(f"pragma table_info({table})")]
    names = [name for name, _ in columns]
    keys = [name for name, key in sorted(columns, key=lambda column: column[1]) if key]
    sql = str(new.execute("select sql from sqlite_master where name = ?", [table]).fetchone()[0])
    reader = _TableReader(old, table, names, keys if "without rowid" in sql.lower() else ["rowid"])
    marks = ", ".join("?" * len(names))
    insert = f"insert or replace into {table} ({', '.join(names)}) values ({marks})"  # noqa: S608 - our names
    rows = iter(reader)
    first = next(rows, None)
    if first is not None:
        new.execute(f"delete from {table}")  # rows that a migration has inserted  # noqa: S608
        new.execute(insert, first)
        new.executemany(insert, rows)
    if reader.is_damaged:
        damaged.append(table)
    return reader.count


class _TableReader:
    """Iterates over the readable rows of a table, in the order of its key."""

    def __init__(
        self, db: sqlite3.Connection, table: str, columns: Sequence[str], keys: Sequence[str]
    ) -> None:
        self.count = 0
        self.is_damaged = False
        self._db = db
        self._key_count = len(keys)
        order = ", ".join(keys)
        select = f"select {order}, {', '.join(columns)} from {table}"  # noqa: S608 - our names
        self._all = f"{select} order by {order}"
        self._after = f"{select} where ({order}) > ({', '.join('?' * len(keys))}) order by {order}"

    def __iter__(self) -> Iterator[list[Any]]:
        key: _Key | None = None
        while True:
            try:
                query = self._all if key is None else self._after
                for row in self._db.execute(query, key or ()):
                    key = _decoded(row[: self._key_count])
                    try:
                        values = list(_decoded(row[self._key_count :]))
                    except UnicodeDecodeError:
                        self.is_damaged = True
                        continue
                    self.count += 1
                    yield values
                return
            except (sqlite3.DatabaseError, UnicodeDecodeError):
                self.is_damaged = True
            key = self._next_readable(key)
            if key is None:
                return

    def _next_readable(self, key: _Key | None) -> _Key | None:
        """Return the smallest known key after which a row can be read; None if there is none."""
        start = key if key is not None else (_MIN_KEY,) * self._key_count
        for column in reversed(range(self._key_count)):
            rest = (_MIN_KEY,) * (self._key_count - column - 1)
            found = self._skip(start[:column], start[column], rest)
            if found is not None:
                return found
        return None

    def _skip(self, prefix: _Key, value: Any, rest: _Key) -> _Key | None:
        if not isinstance(value, int):
            candidates = ((*prefix, text, *rest) for text in _later_texts(value))
            return next(filter(self._is_readable, candidates), None)
        unreadable, step = value, 1
        while not self._is_readable((*prefix, value + step, *rest)):
            unreadable, step = value + step, step * 2
            if value + step >= _MAX_STEP:
                return None
        readable = value + step
        while readable - unreadable > 1:
            middle = (readable + unreadable) // 2
            if self._is_readable((*prefix, middle, *rest)):
                readable = middle
            else:
                unreadable = middle
        return (*prefix, readable, *rest)

    def _is_readable(self, key: _Key) -> bool:
        try:
            row = self._db.execute(f"{self._after} limit 1", key).fetchone()
            _decoded(row[: self._key_count] if row is not None else ())
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return False
        return True


def _decoded(values: Sequence[Any]) -> _Key:
    return tuple(value.decode() if isinstance(value, _Text) else value for value in values)


def _later_texts(value: Any) -> Iterator[Any]:
    """Yield values that sort behind a text or a blob, the nearest first."""
    for end in range(len(value) if isinstance(value, str | bytes) else 0, 0, -1):
        if isinstance(value, str):
            yield value[: end - 1] + chr(min(ord(value[end - 1]) + 1, 0xD7FF))
        elif value[end - 1] < 0xFF:
            yield value[: end - 1] + bytes([value[end - 1] + 1])


# What does not fit together


class _ForeignKey(NamedTuple):
    table: str
    column: str
    parent: str
    parent_column: str


def _remove_inconsistent(db: sqlite3.Connection, found: Salvage) -> None:
    """Delete rows without their parent, damaged messages and damaged originals.

    What was compressed against damaged data is stored without it first, as far as it can be read.
    """
    for column, detach in (
        ("delta_base_fragment_id", _detach_from_fragment),
        ("delta_base_unit_id", _detach_from_unit),
    ):
        parent = column.removeprefix("delta_base_").removesuffix("_id")
        query = f"select distinct {column} from raw_segment where {column} not in (select id from {parent})"  # noqa: S608
        for (id_,) in db.execute(query).fetchall():
            detach(db, id_)  # its messages or segments may be there, although its own row is lost
    _remove_orphans(db)
    while _remove_damaged_fragments(db, found) or _remove_damaged_originals(db, found):
        _remove_orphans(db)
    if not _CHECKED_OR_DERIVED.issuperset(found.damaged_tables):  # any unit may lack rows
        found.unsure = {unit_id for (unit_id,) in db.execute("select id from unit where read_at is not null")}


def _remove_orphans(db: sqlite3.Connection) -> None:
    keys = [
        _ForeignKey(table, column, parent, parent_column or "id")
        for table in _tables(db)
        for _, _, parent, column, parent_column, *_ in db.execute(f"pragma foreign_key_list({table})")
    ]
    while sum(_remove_orphans_of(db, key) for key in keys):
        pass


def _remove_orphans_of(db: sqlite3.Connection, key: _ForeignKey) -> int:
    return db.execute(
        f"delete from {key.table} where {key.column} is not null"  # noqa: S608 - our names
        f" and {key.column} not in (select {key.parent_column} from {key.parent})"
    ).rowcount


def _remove_damaged_fragments(db: sqlite3.Connection, found: Salvage) -> bool:
    """Delete the fragments whose messages cannot all be read. Return whether there were any."""
    fragments = db.execute(
        "select id, unit_id, message_count, external_id from fragment order by id"
    ).fetchall()
    damaged = [one for one in fragments if not _is_fragment_intact(db, *one)]
    for fragment_id, unit_id, *_ in damaged:
        _detach_from_fragment(db, fragment_id)
        partial = _read_partial(db, fragment_id)
        found.fragments.setdefault(unit_id, []).extend([partial] if partial is not None else [])
        db.execute("delete from fragment where id = ?", [fragment_id])
    db.executemany("delete from message_chunk where fragment_id = ?", [(one[0],) for one in damaged])
    return bool(damaged)


def _is_fragment_intact(
    db: sqlite3.Connection, fragment_id: int, unit_id: int, count: int, session_id: str
) -> bool:
    try:
        return not verify_fragment(db, fragment_id, count, session_id)
    except _unreadable():
        return False


def _read_partial(db: sqlite3.Connection, fragment_id: int) -> PartialFragment | None:
    """Return the readable messages of a current fragment; None if its opening is damaged."""
    opening, closing = db.execute(
        "select opening, closing from fragment where id = ? and status = 'current'", [fragment_id]
    ).fetchone() or (b"", b"")
    messages: list[Message] = []
    reader = BodyReader(db)
    for (body,) in db.execute(
        "select body from message_chunk where fragment_id = ? order by position", [fragment_id]
    ):
        try:
            messages += decode_messages(reader.decode(body))
        except _unreadable():
            continue
    try:
        return PartialFragment(
            msgspec.msgpack.decode(opening, type=Opening),
            decode_closing(closing) or Closing(),
            messages,
        )
    except _unreadable():
        return None


def _detach_from_fragment(db: sqlite3.Connection, fragment_id: int) -> None:
    """Store what is compressed against the messages of a fragment without them."""
    reader = BodyReader(db)
    for table, decode, encode in (
        ("message_chunk", reader.decode, recompress_chunk),
        ("raw_segment", lambda body: reader.decode_segment(None, fragment_id, body), compress),
    ):
        query = f"select rowid, body from {table} where delta_base_fragment_id = ?"  # noqa: S608 - our names
        for row, body in db.execute(query, [fragment_id]).fetchall():
            try:
                new = encode(decode(body))
            except _unreadable():
                db.execute(f"delete from {table} where rowid = ?", [row])  # noqa: S608
                continue
            update = f"update {table} set delta_base_fragment_id = null, body = ? where rowid = ?"  # noqa: S608
            db.execute(update, [new, row])


def _remove_damaged_originals(db: sqlite3.Connection, found: Salvage) -> bool:
    """Delete versions of files that are not complete, and damaged rows. Return whether there were any."""
    ends: dict[tuple[int, int], int] = {}
    damaged: set[tuple[int, int]] = set()
    reader = BodyReader(db)
    for unit_id, version, offset, size, digest, *stored in db.execute(
        "select unit_id, version, offset, size, sha256, delta_base_unit_id, delta_base_fragment_id, body"
        " from raw_segment order by unit_id, version, offset"
    ):
        if offset != ends.get((unit_id, version), 0) or not _is_segment_intact(reader, stored, digest):
            damaged.add((unit_id, version))
        ends[unit_id, version] = offset + size
    for unit_id, _ in damaged:
        _detach_from_unit(db, unit_id)
    db.executemany("delete from raw_segment where unit_id = ? and version = ?", damaged)
    rows = list(damaged_rows(db))
    db.executemany("delete from raw_row where id = ?", [(row_id,) for row_id, _ in rows])
    found.originals |= {unit_id for unit_id, _ in damaged} | {unit_id for _, unit_id in rows}
    return bool(damaged or rows)


def _is_segment_intact(reader: BodyReader, stored: Sequence[Any], digest: bytes) -> bool:
    try:
        return sha256(reader.decode_segment(*stored)).digest() == digest
    except _unreadable():
        return False


def _detach_from_unit(db: sqlite3.Connection, unit_id: int) -> None:
    """Store the segments that are compressed against a file without it."""
    reader = BodyReader(db)
    query = "select rowid, body from raw_segment where delta_base_unit_id = ?"
    for row, body in db.execute(query, [unit_id]).fetchall():
        try:
            new = compress(reader.decode_segment(unit_id, None, body))
        except _unreadable():
            db.execute("delete from raw_segment where rowid = ?", [row])
            continue
        db.execute("update raw_segment set delta_base_unit_id = null, body = ? where rowid = ?", [new, row])


def _unreadable() -> tuple[type[Exception], ...]:
    """Return the errors of damaged or missing bodies."""
    return (*decode_errors(), TypeError, sqlite3.DatabaseError)
