"""Rows of one session, fetched in the order in which they are on disk.

For a single session, only its own rows are read. If sessions are read one after the other, as in a first
import, several are fetched together in row order. So a large database is read mostly from front to back.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from sqlite3 import Connection
from typing import Any, NamedTuple, TypeVar

import msgspec

from backscroll.errors import DatabaseLockedError, DatabaseUnreadableError
from backscroll.readers.sqlite import Database, as_bytes
from backscroll.sources.cursor.database import keys
from backscroll.sources.cursor.database.keys import SessionIndex

T = TypeVar("T")

MAX_FETCH_BYTES = 32 * 1024 * 1024  # values in memory at a time
_MAX_CACHE_BYTES = 24 * 1024 * 1024  # values that `stored_rows` need not read again
_INITIAL_AVERAGE_BYTES = 16 * 1024  # estimated size of a bubble, before the first is read
_MIN_AVERAGE_BYTES = 1024.0
_MAX_BATCH_ROWS = 2000  # per query
_MIN_SAMPLE_ROWS = 16  # rows from which the average size is estimated

_BY_ROWID = """
    select rowid, value, typeof(value) = 'text' from cursorDiskKV
    where rowid in (select value from json_each(?)) order by rowid
"""
_BY_KEY = """
    select key, value, typeof(value) = 'text' from cursorDiskKV
    where key in (select value from json_each(?))
"""


class DamagedValue(NamedTuple):
    """Value on a damaged page."""

    reason: str


Value = bytes | DamagedValue | None
StoredRow = tuple[Any, bytes | None, int]  # rowid or key, value, 1 if SQLite stores it as text else 0


class SessionRows:
    """Rows of one session: their rowids, and their values on demand."""

    def __init__(
        self, row_loader: "RowLoader", session_id: str, index: SessionIndex, values: dict[int, Value]
    ) -> None:
        self._row_loader = row_loader
        self._session_id = session_id
        self._values = values
        self.composer_rowid = index.composer_rowid
        self.bubble_rowids = index.bubble_rowids  # by bubble id
        self.related_counts = index.related_counts  # row counts by family

    def composer_value(self) -> Value:
        """Return the value of the composerData row; None if there is no row or it is NULL."""
        if not self.composer_rowid:
            return None
        values = self._row_loader.fetch([self.composer_rowid]) or {}
        if self.composer_rowid in values:
            return values[self.composer_rowid]
        return self._row_loader.value_by_key(f"composerData:{self._session_id}")

    def bubble_values(self, order: Iterable[str]) -> Iterator[tuple[str, Value]]:
        """Return the values of bubbles in the given order. Ids without a row are skipped."""
        bubbles = [
            (bubble_id, self.bubble_rowids[bubble_id])
            for bubble_id in order
            if bubble_id in self.bubble_rowids
        ]
        start = 0
        while start < len(bubbles):
            batch = bubbles[start : start + self._row_loader.batch_size]
            values = self._row_loader.fetch([rowid for _, rowid in batch if rowid not in self._values])
            if values is None:
                continue  # larger than expected; the batch size is smaller now
            start += len(batch)
            for bubble_id, rowid in batch:
                if rowid in self._values:
                    yield bubble_id, self._values.pop(rowid)
                elif rowid in values:
                    yield bubble_id, values.pop(rowid)
                else:  # rewritten since the rows were listed, with a new rowid
                    yield bubble_id, self._row_loader.value_by_key(f"bubbleId:{self._session_id}:{bubble_id}")


class RowLoader:
    """Loads the rows of one database, session by session."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._order: list[tuple[str, int]] = []
        self._positions: dict[str, int] = {}
        self._last_position = -2
        self._session_batch = 1
        self._prefetched: dict[str, SessionRows] = {}
        self._row_cache: dict[int, StoredRow] = {}
        self._cache_room_bytes = _MAX_CACHE_BYTES
        self._average_bytes = float(_INITIAL_AVERAGE_BYTES)
        self._key_copy: Connection | None = None

    @property
    def batch_size(self) -> int:
        """Return the number of bubbles to fetch together."""
        return max(1, int(MAX_FETCH_BYTES / self._average_bytes))

    @property
    def uses_key_copy(self) -> bool:
        """Return whether a copy of the keys replaces a damaged index."""
        return self._key_copy is not None

    def query_keys(self, query: Callable[[Connection], T]) -> T:
        """Run a query that reads only keys. If the key index is damaged, it runs on a copy of the keys."""
        if self._key_copy is None:
            try:
                return self._database.read(query)
            except DatabaseLockedError:
                raise
            except DatabaseUnreadableError:
                self._key_copy = self._database.read(keys.copy_keys)
        return query(self._key_copy)

    def set_order(self, order: list[tuple[str, int]]) -> None:
        """Set the expected order of `load_session` calls, with the bubble count of each session."""
        self._order = order
        self._positions = {session_id: position for position, (session_id, _) in enumerate(order)}
        self._last_position, self._session_batch = -2, 1
        self._clear_caches()

    def load_session(self, session_id: str) -> SessionRows:
        """Return the rows of a session. Prefetch the next sessions if it follows the last one loaded."""
        position = self._positions.get(session_id, -2)
        follows = position == self._last_position + 1
        self._last_position = position
        if session_id in self._prefetched:
            return self._prefetched.pop(session_id)
        self._clear_caches()
        self._session_batch = self._session_batch * 2 if follows else 1
        batch = self._sessions_to_fetch(session_id, position) if self._session_batch > 1 else [session_id]
        indexes = self.query_keys(lambda connection: keys.session_indexes(connection, batch))
        if len(batch) == 1:
            return SessionRows(self, session_id, indexes[session_id], {})
        rowids = [rowid for index in indexes.values() for rowid in index.bubble_rowids.values()]
        values = self.fetch(rowids) or {}
        for each_id, index in indexes.items():
            own_values = {rowid: values[rowid] for rowid in index.bubble_rowids.values() if rowid in values}
            self._prefetched[each_id] = SessionRows(self, each_id, index, own_values)
        return self._prefetched.pop(session_id)

    def _clear_caches(self) -> None:
        self._prefetched.clear()
        self._row_cache.clear()
        self._cache_room_bytes = _MAX_CACHE_BYTES

    def empty_session(self, session_id: str) -> SessionRows:
        """Return the rows of a session without rows."""
        return SessionRows(self, session_id, SessionIndex(0, {}, {}), {})

    def _sessions_to_fetch(self, session_id: str, position: int) -> list[str]:
        """Return the sessions to fetch together, starting with the given one."""
        session_ids = [session_id]
        room_bytes = MAX_FETCH_BYTES - self._order[position][1] * self._average_bytes
        for next_id, bubble_count in self._order[position + 1 : position + self._session_batch]:
            room_bytes -= bubble_count * self._average_bytes
            if room_bytes < 0:
                break
            session_ids.append(next_id)
        return session_ids

    def fetch(self, rowids: list[int]) -> dict[int, Value] | None:
        """Return values by rowid. A damaged page loses only its own rows.

        If the values are much larger than estimated, raise the estimate and return None.
        """
        if not rowids:
            return {}
        rowids_json = msgspec.json.encode(sorted(rowids)).decode()
        limit = 2 * MAX_FETCH_BYTES if len(rowids) > 1 else None
        read_rows = partial(_select_rows, query=_BY_ROWID, wanted_json=rowids_json, limit=limit)
        values: dict[int, Value] = {}
        cache, room_bytes, total_bytes = self._row_cache, self._cache_room_bytes, 0
        try:
            for row in self._database.read(read_rows)[0]:
                rowid, value, _ = row
                values[rowid] = value
                if value is not None:
                    total_bytes += len(value)
                    if len(value) <= room_bytes:
                        cache[rowid] = row
                        room_bytes -= len(value)
            self._cache_room_bytes = room_bytes
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError:
            values = {rowid: self._fetch_one(rowid) for rowid in rowids}
            total_bytes = sum(len(value) for value in values.values() if isinstance(value, bytes))
        if limit is not None and total_bytes > limit:
            self._average_bytes = max(2 * self._average_bytes, total_bytes / len(values))
            return None
        if len(values) >= _MIN_SAMPLE_ROWS:
            self._average_bytes = max(_MIN_AVERAGE_BYTES, total_bytes / len(values))
        return values

    def _fetch_one(self, rowid: int) -> Value:
        read_rows = partial(_select_rows, query=_BY_ROWID, wanted_json=f"[{rowid}]", limit=None)
        try:
            rows, _ = self._database.read(read_rows)
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError as error:
            return DamagedValue(str(error))
        return rows[0][1] if rows else None

    def value_by_key(self, key: str) -> Value:
        """Return the value of a key; None if there is no row or it is NULL."""
        try:
            return self._database.read(lambda connection: _value_by_key(connection, key))
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError:
            rowid = self.query_keys(lambda connection: _rowid(connection, key))
            return self._fetch_one(rowid) if rowid else None

    def rowids_with_prefix(self, prefix: str) -> dict[str, int]:
        """Return the rowids of keys with a prefix that ends in a colon, by the rest of the key."""
        return self.query_keys(lambda connection: _rowids_with_prefix(connection, prefix))

    def value_by_rowid(self, rowid: int) -> bytes | None:
        """Return a value; None if there is no row, it is NULL, or it cannot be read."""
        value = (self.fetch([rowid]) or {}).get(rowid)
        return value if isinstance(value, bytes) else None

    def values_by_key(self, names: list[str]) -> dict[str, bytes]:
        """Return the values of keys. Missing, NULL and unreadable values are omitted."""
        names_json = msgspec.json.encode(names).decode()
        try:
            return self._database.read(lambda connection: _values_by_key(connection, names_json))
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError:
            values = {name: self.value_by_key(name) for name in names}
            return {name: value for name, value in values.items() if value and isinstance(value, bytes)}

    def stored_rows(self, rowids: Iterable[int], limit: int) -> Iterator[StoredRow]:
        """Return the existing, readable rows in row order.

        Rows that are not in the cache are read in batches of about ``limit`` bytes.
        """
        cache, self._row_cache = self._row_cache, {}
        sorted_rowids = sorted(rowids)
        cached_rowids = [rowid for rowid in sorted_rowids if rowid in cache]
        start = 0
        for rows, last_rowid in self._read_batches(
            [rowid for rowid in sorted_rowids if rowid not in cache], limit
        ):
            stop = bisect_right(cached_rowids, last_rowid, start)
            yield from (
                sorted([*map(cache.__getitem__, cached_rowids[start:stop]), *rows]) if stop > start else rows
            )
            start = stop
        yield from map(cache.__getitem__, cached_rowids[start:])

    def _read_batches(self, remaining: list[int], limit: int) -> Iterator[tuple[list[StoredRow], int]]:
        """Return batches of rows, each with the last rowid that it covers."""
        while remaining:
            batch = remaining[:_MAX_BATCH_ROWS]
            rowids_json = msgspec.json.encode(batch).decode()
            read_rows = partial(_select_rows, query=_BY_ROWID, wanted_json=rowids_json, limit=limit)
            try:
                rows, is_limited = self._database.read(read_rows)
            except DatabaseLockedError:
                raise
            except DatabaseUnreadableError:
                is_limited = False
                values = ((rowid, self._fetch_one(rowid)) for rowid in batch)
                rows = [(rowid, value, 1) for rowid, value in values if not isinstance(value, DamagedValue)]
            last_rowid = rows[-1][0] if is_limited else batch[-1]
            yield rows, last_rowid
            remaining = remaining[bisect_right(remaining, last_rowid) :]

    def stored_values(self, names: list[str], limit: int) -> list[tuple[str, bytes, int]]:
        """Return key, value and text flag of keys. Missing, NULL and unreadable values are omitted.

        At most about ``limit`` bytes are returned. Call again for the remaining keys.
        """
        if not names:
            return []
        names_json = msgspec.json.encode(names).decode()
        try:
            rows, _ = self._database.read(
                partial(_select_rows, query=_BY_KEY, wanted_json=names_json, limit=limit)
            )
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError:
            return [(name, value, 0) for name, value in self.values_by_key(names).items()]
        return [
            (key.decode("utf-8", "replace"), value, is_text)
            for key, value, is_text in rows
            if value is not None
        ]

    def clear(self) -> None:
        """Discard prefetched rows and the copy of the keys."""
        self.set_order([])
        if self._key_copy is not None:
            self._key_copy.close()
            self._key_copy = None


class RelatedRows:
    """Rows of a session other than its bubbles, by family and name. Values are fetched one at a time."""

    def __init__(self, row_loader: RowLoader, session_id: str) -> None:
        self._row_loader = row_loader
        self._session_id = session_id
        self._rowids: dict[str, dict[str, int]] = {}

    def get(self, family: str, name: str) -> bytes | None:
        """Return the value of a row; None if there is none or it cannot be read."""
        rowid = self._family(family).get(name)
        return self._row_loader.value_by_rowid(rowid) if rowid is not None else None

    def values(self, family: str) -> Iterator[bytes]:
        """Return the readable values of a family."""
        for rowid in self._family(family).values():
            if value := self._row_loader.value_by_rowid(rowid):
                yield value

    def _family(self, family: str) -> dict[str, int]:
        if family not in self._rowids:
            self._rowids[family] = self._row_loader.rowids_with_prefix(f"{family}:{self._session_id}:")
        return self._rowids[family]


def _select_rows(
    connection: Connection, query: str, wanted_json: str, limit: int | None
) -> tuple[list[StoredRow], bool]:
    """Return rows, and whether the query stopped at the limit (in bytes)."""
    rows: list[StoredRow] = []
    if not keys.has_table(connection, "cursorDiskKV"):
        return rows, False
    total_bytes = 0
    for row in connection.execute(query, [wanted_json]):
        value = row[1]
        if type(value) is not bytes:
            value = as_bytes(value)
            row = (row[0], value, row[2])
        rows.append(row)
        total_bytes += len(value) if value else 0
        if limit is not None and total_bytes > limit:
            return rows, True
    return rows, False


def _rowid(connection: Connection, key: str) -> int:
    return keys.rowid_of(connection, key) if keys.has_table(connection, "cursorDiskKV") else 0


def _value_by_key(connection: Connection, key: str) -> bytes | None:
    if not keys.has_table(connection, "cursorDiskKV"):
        return None
    found = connection.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()
    return as_bytes(found[0]) if found else None


def _values_by_key(connection: Connection, names_json: str) -> dict[str, bytes]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return {}
    rows = connection.execute(
        "select key, value from cursorDiskKV where key in (select value from json_each(?))", [names_json]
    )
    return {key.decode("utf-8", "replace"): data for key, value in rows if (data := as_bytes(value))}


def _rowids_with_prefix(connection: Connection, prefix: str) -> dict[str, int]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return {}
    raw_prefix = prefix.encode("utf-8", "replace")
    return {
        name.decode("utf-8", "replace"): rowid
        for name, rowid in keys.rows_with_prefix(connection, raw_prefix)
    }
