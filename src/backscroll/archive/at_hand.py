"""What was read lately and may be asked for again, kept for as long as the archive stays as it is.

Whoever types a search letter by letter, or turns its pages, is shown much the same messages each time.
"""

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count

import msgspec

from backscroll.archive.bases import Plain
from backscroll.archive.bodies import Piece
from backscroll.archive.workspaces import Known, known_workspaces
from backscroll.model import Message

__all__ = ["AtHand"]

_MOST = 16 * 1024 * 1024  # bytes of pieces
_BASES = 4 * 1024 * 1024  # bytes of what some of them lean on
_TOGETHER = 1024 * 1024  # compressed bytes that are unpacked at once

Spot = tuple[int, int]  # an account's number, and a position in it


class AtHand:
    """Pieces of messages, the order of the list and the workspaces, for one connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._seen: tuple[int, int] | None = None
        self._plain = Plain(db, at_hand=_BASES)
        self._starts: dict[int, list[int]] = {}  # where the pieces of an account begin
        self._pieces: dict[Spot, _Held] = {}  # by the spot they begin at
        self._size = 0
        self._indexes: dict[int, int] | None = None
        self._workspaces: list[Known] | None = None

    def messages(self, spots: Sequence[Spot], having: tuple[bytes, ...] = ()) -> dict[Spot, Message]:
        """The messages at these spots, as they stand today; a spot where nothing stands is left out.

        So may be those that do not have some bytes as they are packed, which is known without unpacking them.
        """
        self._refresh()
        amended = self._db.execute(
            "select a.account, a.position, a.body from json_each(?) j cross join amendment a"
            " on a.account = json_extract(j.value, '$[0]') and a.position = json_extract(j.value, '$[1]')",
            [msgspec.json.encode(spots).decode()],
        )
        found = {
            (account, position): Piece(self._plain.chunk(body)).message(0)
            for account, position, body in amended.fetchall()
        }
        by_piece: defaultdict[Spot, list[Spot]] = defaultdict(list)
        starts = self._starts_of({account for account, _ in spots})
        for spot in spots:
            before = bisect_right(starts[spot[0]], spot[1])
            if before and spot not in found:
                by_piece[spot[0], starts[spot[0]][before - 1]].append(spot)
        for first, held in self._held(list(by_piece)):
            if not all(some in held.plain for some in having):
                continue
            for spot in by_piece[first]:
                place = spot[1] - first[1]
                if place < len(held.piece) and (not having or held.piece.has(place, *having)):
                    found[spot] = held.piece.message(place)
        return found

    def indexes(self) -> dict[int, int]:
        """The places that sessions have in the whole list, from 1, by number."""
        self._refresh()
        if self._indexes is None:
            (numbers,) = self._db.execute(
                "select json_group_array(number) from (select number from conversations"
                " where visibility in ('listed', 'archived') order by updated_at desc, number desc)"
            ).fetchone()
            self._indexes = dict(zip(msgspec.json.decode(numbers, type=list[int]), count(1), strict=False))
        return self._indexes

    def workspaces(self) -> list[Known]:
        """Every workspace that somebody may mean."""
        self._refresh()
        if self._workspaces is None:
            self._workspaces = known_workspaces(self._db)
        return self._workspaces

    def _refresh(self) -> None:
        """Forget what may no longer be so."""
        (version,) = self._db.execute("pragma data_version").fetchone()  # of what others have changed
        seen = version, self._db.total_changes
        if seen != self._seen:
            self._seen = seen
            self._plain = Plain(self._db, at_hand=_BASES)
            self._starts.clear()
            self._pieces.clear()
            self._size = 0
            self._indexes = None
            self._workspaces = None

    def _starts_of(self, accounts: set[int]) -> dict[int, list[int]]:
        """Where the pieces of accounts begin."""
        unknown = accounts - self._starts.keys()
        self._starts |= {account: [] for account in unknown}
        rows = self._db.execute(
            "select account, position from chunk where account in (select value from json_each(?))"
            " order by account, position",
            [msgspec.json.encode(unknown).decode()],
        )
        for account, start in rows if unknown else ():
            self._starts[account].append(start)
        return self._starts

    def _held(self, firsts: Sequence[Spot]) -> "Iterator[tuple[Spot, _Held]]":
        """The pieces that begin there, as those used last; without one that somebody has just removed."""
        known = {first: self._pieces.pop(first) for first in firsts if first in self._pieces}
        self._pieces |= known
        yield from known.items()
        missing = [first for first in firsts if first not in known]
        for first, plain in self._read(missing) if missing else ():
            held = self._pieces[first] = _Held(plain)
            self._size += len(plain)
            while self._size > _MOST and self._pieces:
                self._size -= len(self._pieces.pop(next(iter(self._pieces))).plain)
            yield first, held

    def _read(self, firsts: Sequence[Spot]) -> Iterator[tuple[Spot, bytes]]:
        """Pieces from the archive, many at once unless they are large."""
        rows = self._db.execute(
            "select c.account, c.position, c.body from json_each(?) j cross join chunk c"
            " on c.account = json_extract(j.value, '$[0]') and c.position = json_extract(j.value, '$[1]')",
            [msgspec.json.encode(firsts).decode()],
        )
        some: dict[Spot, bytes] = {}
        for account, start, body in rows:
            some[account, start] = body
            if sum(map(len, some.values())) > _TOGETHER:
                yield from zip(some, self._plain.every([*some.values()]), strict=True)
                some.clear()
        yield from zip(some, self._plain.every([*some.values()]), strict=True)


class _Held:
    """A piece as bytes, and taken apart when it comes to that."""

    def __init__(self, plain: bytes) -> None:
        self.plain = plain

    @cached_property
    def piece(self) -> Piece:
        return Piece(self.plain)
