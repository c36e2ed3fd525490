"""The rows of one session, fetched in the order in which they lie on disk.

A session read by itself costs its own rows. Sessions read one after the other,
as a first import does, are fetched several at a time and in row order, so that
a database of many GB is read mostly from front to back.
"""

from collections.abc import Iterable, Iterator
from sqlite3 import Connection
from typing import NamedTuple

import msgspec

from backscroll.errors import DatabaseLockedError, DatabaseUnreadableError
from backscroll.readers.sqlite import Database, as_bytes
from backscroll.sources.cursor import keys

__all__ = ["Damaged", "Shelf", "Warehouse"]

BUDGET = 32 * 1024 * 1024  # bytes of values held at a time
_GUESS = 16 * 1024  # bytes of a bubble, before any was seen
_FEWEST = 16  # bubbles fetched together however large they are

_VALUES = """
    select rowid, value from cursorDiskKV
    where rowid in (select value from json_each(?)) order by rowid
"""


class Damaged(NamedTuple):
    """A value that lies on a damaged page."""

    reason: str


Value = bytes | Damaged | None


class Shelf:
    """All rows of one session: which there are, and their values when asked for."""

    def __init__(
        self, warehouse: "Warehouse", session: str, outline: "_Outline", values: dict[int, Value]
    ) -> None:
        self._warehouse = warehouse
        self._session = session
        self._values = values
        self.data_rowid = outline.data
        self.bubbles = outline.bubbles  # bubble id to rowid
        self.others = outline.others  # rows by family

    def data(self) -> Value:
        """The composerData row; None when there is none or it was emptied."""
        if not self.data_rowid:
            return None
        values = self._warehouse.values([self.data_rowid])
        if self.data_rowid in values:
            return values[self.data_rowid]
        return self._warehouse.value_at(f"composerData:{self._session}")

    def bodies(self, order: Iterable[str]) -> Iterator[tuple[str, Value]]:
        """The given bubbles' values in the given order; ids without a row give nothing."""
        wanted = [(name, self.bubbles[name]) for name in order if name in self.bubbles]
        step = self._warehouse.step
        for start in range(0, len(wanted), step):
            some = wanted[start : start + step]
            missing = [rowid for _, rowid in some if rowid not in self._values]
            values = self._warehouse.values(missing) if missing else {}
            for name, rowid in some:
                if rowid in self._values:
                    yield name, self._values.pop(rowid)
                elif rowid in values:
                    yield name, values.pop(rowid)
                else:  # written again since the rows were counted, under a new rowid
                    yield name, self._warehouse.value_at(f"bubbleId:{self._session}:{name}")


class _Outline(NamedTuple):
    data: int
    bubbles: dict[str, int]
    others: dict[str, int]


class Warehouse:
    """The rows of one database, session by session."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._order: list[tuple[str, int]] = []
        self._place: dict[str, int] = {}
        self._last = -2
        self._ahead = 1
        self._ready: dict[str, Shelf] = {}
        self._average = float(_GUESS)

    @property
    def step(self) -> int:
        """How many bubbles to fetch together."""
        return max(_FEWEST, int(BUDGET / self._average))

    def expect(self, order: list[tuple[str, int]]) -> None:
        """Sessions, with the number of their bubbles, in the order in which they may be asked for."""
        self._order = order
        self._place = {name: place for place, (name, _) in enumerate(order)}
        self._last, self._ahead = -2, 1
        self._ready.clear()

    def take(self, session: str) -> Shelf:
        """One session's rows. When it follows the one taken last, the next ones are fetched with it."""
        place = self._place.get(session, -2)
        follows = place == self._last + 1
        self._last = place
        if session in self._ready:
            return self._ready.pop(session)
        self._ready.clear()
        self._ahead = self._ahead * 2 if follows else 1
        names = self._together(session, place) if self._ahead > 1 else [session]
        outlines = self._outline(names)
        if len(names) == 1:
            return Shelf(self, session, outlines[session], {})
        values = self.values([rowid for outline in outlines.values() for rowid in outline.bubbles.values()])
        for name, outline in outlines.items():
            mine = {rowid: values[rowid] for rowid in outline.bubbles.values() if rowid in values}
            self._ready[name] = Shelf(self, name, outline, mine)
        return self._ready.pop(session)

    def empty(self, session: str) -> Shelf:
        """The shelf of a session without rows."""
        return Shelf(self, session, _Outline(0, {}, {}), {})

    def _together(self, session: str, place: int) -> list[str]:
        names, room = [session], BUDGET - self._order[place][1] * self._average
        for name, number in self._order[place + 1 : place + self._ahead]:
            room -= number * self._average
            if room < 0:
                break
            names.append(name)
        return names

    def _outline(self, names: list[str]) -> dict[str, _Outline]:
        return self._database.read(lambda connection: _outlines(connection, names))

    def values(self, rowids: list[int]) -> dict[int, Value]:
        """Values by rowid. A damaged page costs its own rows only."""
        listed = msgspec.json.encode(sorted(rowids)).decode()
        try:
            found: dict[int, Value] = dict(
                self._database.read(lambda connection: _values(connection, listed))
            )
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError:
            found = {rowid: self._value(rowid) for rowid in rowids}
        self._weigh(found)
        return found

    def _value(self, rowid: int) -> Value:
        try:
            rows = self._database.read(lambda connection: _values(connection, f"[{rowid}]"))
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError as error:
            return Damaged(str(error))
        return rows[0][1] if rows else None

    def value_at(self, key: str) -> Value:
        """The value under a key; None when there is none or it was emptied."""
        return self._database.read(lambda connection: _value_at(connection, key))

    def values_below(self, prefix: str) -> dict[str, bytes]:
        """Values whose keys begin with a prefix that ends in a colon, by what follows it."""
        return self._database.read(lambda connection: _values_below(connection, prefix))

    def values_at(self, names: list[str]) -> dict[str, bytes]:
        """The values under those of the keys that are there and not emptied."""
        listed = msgspec.json.encode(names).decode()
        return self._database.read(lambda connection: _values_at(connection, listed))

    def _weigh(self, values: dict[int, Value]) -> None:
        """Learn from a fetch how large bubbles are here."""
        if len(values) >= _FEWEST:
            size = sum(len(value) for value in values.values() if isinstance(value, bytes))
            self._average = max(1024.0, size / len(values))

    def drop(self) -> None:
        """Forget what was fetched ahead."""
        self.expect([])


def _outlines(connection: Connection, names: list[str]) -> dict[str, _Outline]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return {name: _Outline(0, {}, {}) for name in names}
    return {name: _outline(connection, name) for name in names}


def _outline(connection: Connection, name: str) -> _Outline:
    found: dict[str, int] = {}
    for bubble, rowid in keys.bubbles(connection, name):
        text = bubble.decode("utf-8", "replace")
        found[text if text not in found else f"{text}#{rowid}"] = rowid
    return _Outline(
        keys.rowid_of(connection, f"composerData:{name}"), found, keys.count_owned(connection, name)
    )


def _values(connection: Connection, rowids: str) -> list[tuple[int, bytes | None]]:
    return [(rowid, as_bytes(value)) for rowid, value in connection.execute(_VALUES, [rowids])]


def _value_at(connection: Connection, key: str) -> bytes | None:
    if not keys.has_table(connection, "cursorDiskKV"):
        return None
    found = connection.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()
    return as_bytes(found[0]) if found else None


def _values_at(connection: Connection, names: str) -> dict[str, bytes]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return {}
    rows = connection.execute(
        "select key, value from cursorDiskKV where key in (select value from json_each(?))", [names]
    )
    return {key.decode("utf-8", "replace"): data for key, value in rows if (data := as_bytes(value))}


def _values_below(connection: Connection, prefix: str) -> dict[str, bytes]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return {}
    rows = connection.execute(
        "select key, value from cursorDiskKV where key >= ? and key < ?", [prefix, prefix[:-1] + ";"]
    )
    start = len(prefix.encode())
    return {key[start:].decode("utf-8", "replace"): as_bytes(value) or b"" for key, value in rows}
