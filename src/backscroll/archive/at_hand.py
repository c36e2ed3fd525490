"""What was read lately and may be asked for again, kept for as long as the archive stays as it is.

Whoever types a search letter by letter, or turns its pages, is shown much the same messages each time.
"""

import sqlite3
from bisect import bisect_right
from collections.abc import Sequence
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

    def messages(self, spots: Sequence[Spot], having: bytes = b"") -> dict[Spot, Message]:
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
        without: set[Spot] = set()
        for spot in spots:
            first = self._first(spot)
            if first is None or spot in found or first in without:
                continue
            held, place = self._held(first), spot[1] - first[1]
            if held is None:
                continue
            if having not in held.plain:
                without.add(first)
            elif place < len(held.piece) and (not having or held.piece.has(place, having)):
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

    def _first(self, spot: Spot) -> Spot | None:
        """Where the piece begins that a spot is in."""
        account, position = spot
        if account not in self._starts:
            rows = self._db.execute(
                "select position from chunk where account = ? order by position", [account]
            )
            self._starts[account] = [start for (start,) in rows]
        starts = self._starts[account]
        place = bisect_right(starts, position)
        return (account, starts[place - 1]) if place else None

    def _held(self, first: Spot) -> "_Held | None":
        """The piece that begins there, as the one used last; None when somebody has just removed it."""
        known = self._pieces.pop(first, None) or self._read(first)
        if known is not None:
            self._pieces[first] = known
        return known

    def _read(self, first: Spot) -> "_Held | None":
        row = self._db.execute("select body from chunk where account = ? and position = ?", first).fetchone()
        if row is None:
            return None
        held = _Held(self._plain.chunk(row[0]))
        self._size += len(held.plain)
        while self._size > _MOST and self._pieces:
            self._size -= len(self._pieces.pop(next(iter(self._pieces))).plain)
        return held


class _Held:
    """A piece as bytes, and taken apart when it comes to that."""

    def __init__(self, plain: bytes) -> None:
        self.plain = plain

    @cached_property
    def piece(self) -> Piece:
        return Piece(self.plain)
