"""The rows of one session, fetched in the order in which they lie on disk.

A session read by itself costs its own rows. Sessions read one after the other,
as a first import does, are fetched several at a time and in row order, so that
a database of many GB is read mostly from front to back.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from sqlite3 import Connection
from typing import Any, NamedTuple, TypeVar

import msgspec

from backscroll.errors import DatabaseLockedError, DatabaseUnreadableError
from backscroll.readers.sqlite import Database, as_bytes
from backscroll.sources.cursor.database import damaged_index, keys

__all__ = ["DamagedValue", "RelatedRows", "RowLoader", "SessionRows", "StoredRow", "Value"]

T = TypeVar("T")

MAX_FETCH_BYTES = 32 * 1024 * 1024  # bytes of values held at a time
_HELD = 24 * 1024 * 1024  # bytes of values that stay in hand, to be kept after they were told
_GUESS = 16 * 1024  # bytes of a bubble, before any was seen
_MOST_AT_ONCE = 2000  # rows asked for together
_ENOUGH = 16  # values that tell how large the others are

_BY_ROWID = """
    select rowid, value, typeof(value) = 'text' from cursorDiskKV
    where rowid in (select value from json_each(?)) order by rowid
"""
_BY_KEY = """
    select key, value, typeof(value) = 'text' from cursorDiskKV
    where key in (select value from json_each(?))
"""


class DamagedValue(NamedTuple):
    """A value that lies on a damaged page."""

    reason: str


Value = bytes | DamagedValue | None


StoredRow = tuple[Any, bytes | None, int]  # rowid or key, the value, and 1 when SQLite has it as text


class SessionRows:
    """All rows of one session: which there are, and their values when asked for."""

    def __init__(
        self, row_loader: "RowLoader", session: str, outline: "_Outline", values: dict[int, Value]
    ) -> None:
        self._row_loader = row_loader
        self._session = session
        self._values = values
        self.composer_rowid = outline.data
        self.bubbles = outline.bubbles  # bubble id to rowid
        self.others = outline.others  # rows by family

    def data(self) -> Value:
        """The composerData row; None when there is none or it was emptied."""
        if not self.composer_rowid:
            return None
        values = self._row_loader.fetch([self.composer_rowid]) or {}
        if self.composer_rowid in values:
            return values[self.composer_rowid]
        return self._row_loader.value_by_key(f"composerData:{self._session}")

    def bodies(self, order: Iterable[str]) -> Iterator[tuple[str, Value]]:
        """The given bubbles' values in the given order; ids without a row give nothing."""
        wanted = [(name, self.bubbles[name]) for name in order if name in self.bubbles]
        start = 0
        while start < len(wanted):
            some = wanted[start : start + self._row_loader.step]
            values = self._row_loader.fetch([rowid for _, rowid in some if rowid not in self._values])
            if values is None:
                continue  # larger than expected; from now on the step is smaller
            start += len(some)
            for name, rowid in some:
                if rowid in self._values:
                    yield name, self._values.pop(rowid)
                elif rowid in values:
                    yield name, values.pop(rowid)
                else:  # written again since the rows were counted, under a new rowid
                    yield name, self._row_loader.value_by_key(f"bubbleId:{self._session}:{name}")


class _Outline(NamedTuple):
    data: int
    bubbles: dict[str, int]
    others: dict[str, int]


class RowLoader:
    """The rows of one database, session by session."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._order: list[tuple[str, int]] = []
        self._place: dict[str, int] = {}
        self._last = -2
        self._ahead = 1
        self._ready: dict[str, SessionRows] = {}
        self._held: dict[int, StoredRow] = {}
        self._room = _HELD
        self._average = float(_GUESS)
        self._key_copy: Connection | None = None

    @property
    def step(self) -> int:
        """How many bubbles to fetch together."""
        return max(1, int(MAX_FETCH_BYTES / self._average))

    @property
    def uses_key_copy(self) -> bool:
        """Whether a list of keys stands in for a damaged index."""
        return self._key_copy is not None

    def walk(self, work: Callable[[Connection], T]) -> T:
        """Run work that looks at keys alone; where their index is damaged, on a list made from the table."""
        if self._key_copy is None:
            try:
                return self._database.read(work)
            except DatabaseLockedError:
                raise
            except DatabaseUnreadableError:
                self._key_copy = self._database.read(damaged_index.copy_keys)
        return work(self._key_copy)

    def expect(self, order: list[tuple[str, int]]) -> None:
        """Sessions, with the number of their bubbles, in the order in which they may be asked for."""
        self._order = order
        self._place = {name: place for place, (name, _) in enumerate(order)}
        self._last, self._ahead = -2, 1
        self._let_go()

    def take(self, session: str) -> SessionRows:
        """One session's rows. When it follows the one taken last, the next ones are fetched with it."""
        place = self._place.get(session, -2)
        follows = place == self._last + 1
        self._last = place
        if session in self._ready:
            return self._ready.pop(session)
        self._let_go()
        self._ahead = self._ahead * 2 if follows else 1
        names = self._together(session, place) if self._ahead > 1 else [session]
        outlines = self._outline(names)
        if len(names) == 1:
            return SessionRows(self, session, outlines[session], {})
        rowids = [rowid for outline in outlines.values() for rowid in outline.bubbles.values()]
        values = self.fetch(rowids) or {}
        for name, outline in outlines.items():
            mine = {rowid: values[rowid] for rowid in outline.bubbles.values() if rowid in values}
            self._ready[name] = SessionRows(self, name, outline, mine)
        return self._ready.pop(session)

    def _let_go(self) -> None:
        self._ready.clear()
        self._held.clear()
        self._room = _HELD

    def empty(self, session: str) -> SessionRows:
        """The shelf of a session without rows."""
        return SessionRows(self, session, _Outline(0, {}, {}), {})

    def _together(self, session: str, place: int) -> list[str]:
        names, room = [session], MAX_FETCH_BYTES - self._order[place][1] * self._average
        for name, number in self._order[place + 1 : place + self._ahead]:
            room -= number * self._average
            if room < 0:
                break
            names.append(name)
        return names

    def _outline(self, names: list[str]) -> dict[str, _Outline]:
        return self.walk(lambda connection: _outlines(connection, names))

    def fetch(self, rowids: list[int]) -> dict[int, Value] | None:
        """Values by rowid; None when together they are far larger than expected, which is then remembered.

        A damaged page costs its own rows only.
        """
        if not rowids:
            return {}
        listed = msgspec.json.encode(sorted(rowids)).decode()
        limit = 2 * MAX_FETCH_BYTES if len(rowids) > 1 else None
        work = partial(_whole, query=_BY_ROWID, wanted=listed, limit=limit)
        found: dict[int, Value] = {}
        held, room, size = self._held, self._room, 0
        try:
            for row in self._database.read(work)[0]:
                rowid, value, _ = row
                found[rowid] = value
                if value is not None:
                    size += len(value)
                    if len(value) <= room:
                        held[rowid] = row
                        room -= len(value)
            self._room = room
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError:
            found = {rowid: self._value(rowid) for rowid in rowids}
            size = sum(len(value) for value in found.values() if isinstance(value, bytes))
        if limit is not None and size > limit:
            self._average = max(2 * self._average, size / len(found))
            return None
        if len(found) >= _ENOUGH:
            self._average = max(1024.0, size / len(found))
        return found

    def _value(self, rowid: int) -> Value:
        work = partial(_whole, query=_BY_ROWID, wanted=f"[{rowid}]", limit=None)
        try:
            rows, _ = self._database.read(work)
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError as error:
            return DamagedValue(str(error))
        return rows[0][1] if rows else None

    def value_by_key(self, key: str) -> Value:
        """The value under a key; None when there is none or it was emptied."""
        try:
            return self._database.read(lambda connection: _value_by_key(connection, key))
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError:
            rowid = self.walk(lambda connection: _rowid(connection, key))
            return self._value(rowid) if rowid else None

    def rowids_with_prefix(self, prefix: str) -> dict[str, int]:
        """Rows whose keys begin with a prefix that ends in a colon, by what follows it."""
        return self.walk(lambda connection: _rowids_with_prefix(connection, prefix))

    def value_by_rowid(self, rowid: int) -> bytes | None:
        """One value; None when it is not there, was emptied, or cannot be read."""
        value = (self.fetch([rowid]) or {}).get(rowid)
        return value if isinstance(value, bytes) else None

    def values_by_key(self, names: list[str]) -> dict[str, bytes]:
        """The values under those of the keys that are there, not emptied, and can be read."""
        listed = msgspec.json.encode(names).decode()
        try:
            return self._database.read(lambda connection: _values_by_key(connection, listed))
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError:
            single = {name: self.value_by_key(name) for name in names}
            return {name: value for name, value in single.items() if value and isinstance(value, bytes)}

    def stored_rows(self, rowids: Iterable[int], limit: int) -> Iterator[StoredRow]:
        """Rows that are there and can be read, in row order; of those that are not in hand because they were
        just told, about ``limit`` bytes at a time."""
        held, self._held = self._held, {}
        wanted = sorted(rowids)
        told = [rowid for rowid in wanted if rowid in held]
        start = 0
        for rows, last in self._asked_for([rowid for rowid in wanted if rowid not in held], limit):
            stop = bisect_right(told, last, start)
            yield from sorted([*map(held.__getitem__, told[start:stop]), *rows]) if stop > start else rows
            start = stop
        yield from map(held.__getitem__, told[start:])

    def _asked_for(self, left: list[int], limit: int) -> Iterator[tuple[list[StoredRow], int]]:
        """Some rows at a time, and up to which rowid these are all."""
        while left:
            some = left[:_MOST_AT_ONCE]
            listed = msgspec.json.encode(some).decode()
            work = partial(_whole, query=_BY_ROWID, wanted=listed, limit=limit)
            try:
                rows, is_cut = self._database.read(work)
            except DatabaseLockedError:
                raise
            except DatabaseUnreadableError:
                is_cut = False
                single = ((rowid, self._value(rowid)) for rowid in some)
                rows = [(rowid, one, 1) for rowid, one in single if not isinstance(one, DamagedValue)]
            last = rows[-1][0] if is_cut else some[-1]
            yield rows, last
            left = left[bisect_right(left, last) :]

    def stored_values(self, names: list[str], limit: int) -> list[tuple[str, bytes, int]]:
        """The values under those of the keys that are there, not emptied, and can be read.

        Where they are more than ``limit`` bytes, only some; ask for the others again.
        """
        if not names:
            return []
        listed = msgspec.json.encode(names).decode()
        try:
            rows, _ = self._database.read(partial(_whole, query=_BY_KEY, wanted=listed, limit=limit))
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError:
            return [(name, value, 0) for name, value in self.values_by_key(names).items()]
        return [
            (key.decode("utf-8", "replace"), value, text) for key, value, text in rows if value is not None
        ]

    def drop(self) -> None:
        """Forget what was fetched ahead, and the list of keys that stood in for a damaged index."""
        self.expect([])
        if self._key_copy is not None:
            self._key_copy.close()
            self._key_copy = None


class RelatedRows:
    """The rows beside a session's messages, by family and name; values are fetched one at a time."""

    def __init__(self, row_loader: RowLoader, session: str) -> None:
        self._row_loader = row_loader
        self._session = session
        self._rowids: dict[str, dict[str, int]] = {}

    def get(self, family: str, name: str) -> bytes | None:
        rowid = self._family(family).get(name)
        return self._row_loader.value_by_rowid(rowid) if rowid is not None else None

    def values(self, family: str) -> Iterator[bytes]:
        """The values of a family that can be read."""
        for rowid in self._family(family).values():
            if value := self._row_loader.value_by_rowid(rowid):
                yield value

    def _family(self, family: str) -> dict[str, int]:
        if family not in self._rowids:
            self._rowids[family] = self._row_loader.rowids_with_prefix(f"{family}:{self._session}:")
        return self._rowids[family]


def _outlines(connection: Connection, names: list[str]) -> dict[str, _Outline]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return {name: _Outline(0, {}, {}) for name in names}
    return {name: _outline(connection, name) for name in names}


def _outline(connection: Connection, name: str) -> _Outline:
    found: dict[str, int] = {}
    for bubble, rowid in keys.rows_with_prefix(connection, f"bubbleId:{name}:".encode()):
        text = bubble.decode("utf-8", "replace")
        found[text if text not in found else f"{text}#{rowid}"] = rowid
    return _Outline(
        keys.rowid_of(connection, f"composerData:{name}"), found, keys.count_owned(connection, name)
    )


def _whole(
    connection: Connection, query: str, wanted: str, limit: int | None
) -> tuple[list[StoredRow], bool]:
    """Rows, and whether there are more of them than the limit allows."""
    found: list[StoredRow] = []
    if not keys.has_table(connection, "cursorDiskKV"):
        return found, False
    size = 0
    for row in connection.execute(query, [wanted]):
        value = row[1]
        if type(value) is not bytes:
            value = as_bytes(value)
            row = (row[0], value, row[2])
        found.append(row)
        size += len(value) if value else 0
        if limit is not None and size > limit:
            return found, True
    return found, False


def _rowid(connection: Connection, key: str) -> int:
    return keys.rowid_of(connection, key) if keys.has_table(connection, "cursorDiskKV") else 0


def _value_by_key(connection: Connection, key: str) -> bytes | None:
    if not keys.has_table(connection, "cursorDiskKV"):
        return None
    found = connection.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()
    return as_bytes(found[0]) if found else None


def _values_by_key(connection: Connection, names: str) -> dict[str, bytes]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return {}
    rows = connection.execute(
        "select key, value from cursorDiskKV where key in (select value from json_each(?))", [names]
    )
    return {key.decode("utf-8", "replace"): data for key, value in rows if (data := as_bytes(value))}


def _rowids_with_prefix(connection: Connection, prefix: str) -> dict[str, int]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return {}
    start = prefix.encode("utf-8", "replace")
    return {
        name.decode("utf-8", "replace"): rowid for name, rowid in keys.rows_with_prefix(connection, start)
    }
