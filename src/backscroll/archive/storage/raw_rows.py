"""Rows of the tools' databases, kept so that a session can be written back.

Of each row the newest version is kept, and of older ones those that held something which a later one lost.
A row that vanished stays.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from backscroll.archive.storage.blob_store import BlobRef, BlobStore, compact_chunk
from backscroll.archive.storage.row_versions import is_superset
from backscroll.errors import ArchiveError, BackscrollError, DatabaseLockedError
from backscroll.model import RawRow

__all__ = ["delete_rows", "has_same_rows", "read_rows", "store_rows", "verify_rows"]

_TOGETHER = 500  # rows written in one go
_Place = tuple[str, str, str, str]  # path, table, key, part

_INSERT = (
    "insert into raw_row (unit_id, path, table_name, key, part, version, is_text, is_shared, removed_fields,"
    " content_hash, blob_chunk_id, offset, size) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SELECT = (
    "select path, table_name, key, part, id, version, content_hash, is_gone, is_text, removed_fields,"
    " blob_chunk_id, offset, size from raw_row where unit_id = ? order by version"
)


class _Version(Struct):
    """One version of a row, as it is kept."""

    number: int
    version: int
    digest: bytes | None
    is_gone: bool
    is_text: bool
    blanked: str | None
    spot: BlobRef | None


def store_rows(db: sqlite3.Connection, unit: int, rows: Iterable[RawRow], *, is_new: bool = False) -> bool:
    """Keep what is new in a unit's rows, and note which are no longer there; of a new one none was kept.

    False when somebody holds the database, so that they are to be asked for again. Rows that did not come
    because others could not be read are not called gone.
    """
    keeper = _Keeper(db, unit, {} if is_new else dict(_versions(db, unit)))
    is_whole = is_open = True
    try:
        for row in rows:
            keeper.keep(row)
    except (
        BackscrollError,
        sqlite3.OperationalError,
    ) as error:  # of the source; a full disk fails again below
        is_whole, is_open = False, not isinstance(error, DatabaseLockedError)
    keeper.flush()
    if is_whole:
        keeper.mark_gone()
    return is_open


class _Keeper:
    """One unit's rows on their way in."""

    def __init__(self, db: sqlite3.Connection, unit: int, known: dict[_Place, _Version]) -> None:
        self._db = db
        self._unit = unit
        self._known = known  # the newest of each row; those told are taken out
        self._pieces = BlobStore(db)
        self._new: list[tuple[object, ...]] = []
        self._left: set[int] = set()  # pieces that a row has let go of

    def keep(self, row: RawRow) -> None:
        digest = content_hash(row.value) if row.value is not None else None
        known = self._known.pop((row.path, row.table, row.key, row.part), None) if self._known else None
        if known is None:
            self._add(row, 1, digest)
            return
        if known.is_gone:
            self._mark([known], is_gone=False)
        if known.digest == digest:
            return
        if self._is_replaced(row, known):
            self._db.execute("delete from raw_row where id = ?", [known.number])
            if known.spot is not None:
                self._left.add(known.spot.piece)
        if not self._is_back(row, known.version + 1, digest):
            self._add(row, known.version + 1, digest)

    def _is_back(self, row: RawRow, version: int, digest: bytes | None) -> bool:
        """Whether the row is again what it was before; then that version is the newest."""
        return bool(
            self._db.execute(
                "update raw_row set version = ?, is_gone = 0 where unit_id = ? and content_hash is ?"
                " and key = ? and path = ? and table_name = ? and part = ?",
                [version, self._unit, digest, row.key, row.path, row.table, row.part],
            ).rowcount
        )

    def _is_replaced(self, row: RawRow, known: _Version) -> bool:
        """Whether nothing is lost when the newer version takes the place of the older one."""
        if known.spot is None:
            return True
        return row.value is not None and is_superset(row.value, self._pieces.get(known.spot), row.volatile)

    def _add(self, row: RawRow, version: int, digest: bytes | None) -> None:
        spot: tuple[int | None, int | None, int | None] = (None, None, None)
        if row.value is not None:
            spot = (self._shared(digest) if row.is_shared else None) or self._pieces.add(row.value)
        blanked = msgspec.json.encode(row.blanked).decode() if row.blanked else None
        self._new.append(
            (
                self._unit,
                row.path,
                row.table,
                row.key,
                row.part,
                version,
                row.is_text,
                row.is_shared,
                blanked,
                digest,
                *spot,
            )
        )
        if len(self._new) >= _TOGETHER:
            self._write()

    def _shared(self, digest: bytes | None) -> tuple[int, int, int] | None:
        """Where a value lies that another session has, too."""
        found: tuple[int, int, int] | None = self._db.execute(
            "select blob_chunk_id, offset, size from raw_row where content_hash = ? and is_shared", [digest]
        ).fetchone()
        return found

    def _write(self) -> None:
        if self._new:
            self._db.executemany(_INSERT, self._new)
            self._new = []

    def flush(self) -> None:
        """Write what is in hand, and give back the room of what was replaced."""
        self._write()
        self._pieces.flush()
        for piece in self._left:
            compact_chunk(self._db, piece)

    def mark_gone(self) -> None:
        """Those that did not come are no longer there."""
        self._mark([version for version in self._known.values() if not version.is_gone], is_gone=True)

    def _mark(self, versions: list[_Version], *, is_gone: bool) -> None:
        if versions:
            self._db.executemany(
                "update raw_row set is_gone = ? where id = ?",
                [(is_gone, one.number) for one in versions],
            )


def content_hash(value: bytes) -> bytes:
    return sha256(value).digest()[:16]


def _versions(db: sqlite3.Connection, unit: int) -> Iterator[tuple[_Place, _Version]]:
    """Every version of every row of a unit, the oldest first."""
    for path, table, key, part, number, version, digest, is_gone, is_text, blanked, *at in db.execute(
        _SELECT, [unit]
    ):
        spot = BlobRef(*at) if digest is not None else None
        yield (
            (path, table, key, part),
            _Version(number, version, digest, bool(is_gone), bool(is_text), blanked, spot),
        )


def read_rows(db: sqlite3.Connection, unit: int, *, fullest: bool = False) -> Iterator[RawRow]:
    """The rows of a unit as they were when it was last read.

    The fullest are those that vanished as well, and of emptied ones what they held before. Raises
    `ArchiveError` when a value is damaged.
    """
    chosen: dict[_Place, _Version] = {}
    for place, version in _versions(db, unit):
        if not fullest or version.digest is not None or place not in chosen:
            chosen[place] = version
    pieces = BlobStore(db)
    for (path, table, key, part), version in sorted(
        chosen.items(), key=lambda each: each[1].spot or (0, 0, 0)
    ):
        if version.is_gone and not fullest:
            continue
        value = pieces.get(version.spot) if version.spot is not None else None
        if value is not None and content_hash(value) != version.digest:
            reason = f"the kept row {key} is damaged; backscroll archive verify finds all that is"
            raise ArchiveError(reason, Path(path))
        yield RawRow(
            path=path,
            table=table,
            key=key,
            part=part,
            value=value,
            is_text=version.is_text,
            blanked=tuple(msgspec.json.decode(version.blanked)) if version.blanked else (),
        )


def has_same_rows(db: sqlite3.Connection, unit: int, rows: Iterable[RawRow]) -> bool:
    """Whether these are the rows that were kept of a unit when it was last read."""
    newest = dict(_versions(db, unit))
    known = {place: version.digest for place, version in newest.items() if not version.is_gone}
    try:
        for row in rows:
            digest = content_hash(row.value) if row.value is not None else None
            if known.pop((row.path, row.table, row.key, row.part), b"") != digest:
                return False
    except (BackscrollError, sqlite3.OperationalError):  # of the source
        return False
    return not known


def delete_rows(db: sqlite3.Connection, unit: int) -> None:
    """Leave nothing of a unit's rows but the values that another session has, too."""
    pieces = db.execute("select distinct blob_chunk_id from raw_row where unit_id = ?", [unit]).fetchall()
    db.execute("delete from raw_row where unit_id = ?", [unit])
    for (piece,) in pieces:
        if piece is not None:
            compact_chunk(db, piece, always=True)


def verify_rows(db: sqlite3.Connection) -> list[str]:
    """What does not agree, a sentence each."""
    pieces = BlobStore(db)
    return [
        f"the kept row {key} of unit {unit} is damaged"
        for unit, key, digest, *at in db.execute(
            "select unit_id, key, content_hash, blob_chunk_id, offset, size from raw_row"
            " where content_hash is not null order by blob_chunk_id, offset"
        ).fetchall()
        if content_hash(pieces.get(BlobRef(*at))) != digest
    ]
