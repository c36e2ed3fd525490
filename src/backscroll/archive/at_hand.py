"""What was read lately and may be asked for again, kept for as long as the archive stays as it is.

Whoever types a search letter by letter, or turns its pages, is shown much the same messages each time.
"""

import sqlite3
from collections.abc import Sequence
from itertools import count

import msgspec

from backscroll.archive.bases import Plain
from backscroll.archive.bodies import Piece
from backscroll.model import Message

__all__ = ["AtHand"]

_MOST = 16 * 1024 * 1024  # bytes of pieces
_BASES = 4 * 1024 * 1024  # bytes of what some of them lean on

Spot = tuple[int, int]  # an account's number, and a position in it


class AtHand:
    """Pieces of messages and the order of the list, for one connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._seen: tuple[int, int] | None = None
        self._plain = Plain(db, at_hand=_BASES)
        self._pieces: dict[Spot, tuple[Piece, int]] = {}  # by their first spot, each with its size
        self._size = 0
        self._indexes: dict[int, int] | None = None

    def messages(self, spots: Sequence[Spot]) -> dict[Spot, Message]:
        """The messages at these spots, as they stand today; a spot where nothing stands is left out."""
        self._refresh()
        asked = msgspec.json.encode(spots).decode()
        amended = self._db.execute(
            "select a.account, a.position, a.body from json_each(?) j cross join amendment a"
            " on a.account = json_extract(j.value, '$[0]') and a.position = json_extract(j.value, '$[1]')",
            [asked],
        )
        found = {
            (account, position): Piece(self._plain.chunk(body)).message(0)
            for account, position, body in amended.fetchall()
        }
        firsts = self._db.execute(
            "select (select position from chunk where account = json_extract(j.value, '$[0]') and position"
            " <= json_extract(j.value, '$[1]') order by position desc limit 1) from json_each(?) j",
            [asked],
        ).fetchall()
        for spot, (first,) in zip(spots, firsts, strict=True):
            if first is None or spot in found:
                continue
            account, position = spot
            piece = self._piece((account, first))
            if position - first < len(piece):
                found[spot] = piece.message(position - first)
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

    def _refresh(self) -> None:
        """Forget what may no longer be so."""
        (version,) = self._db.execute("pragma data_version").fetchone()  # of what others have changed
        seen = version, self._db.total_changes
        if seen != self._seen:
            self._seen = seen
            self._plain = Plain(self._db, at_hand=_BASES)
            self._pieces.clear()
            self._size = 0
            self._indexes = None

    def _piece(self, first: Spot) -> Piece:
        known = self._pieces.pop(first, None) or self._read(first)
        self._pieces[first] = known  # as the one used last
        return known[0]

    def _read(self, first: Spot) -> tuple[Piece, int]:
        (body,) = self._db.execute(
            "select body from chunk where account = ? and position = ?", first
        ).fetchone()
        plain = self._plain.chunk(body)
        self._size += len(plain)
        while self._size > _MOST and self._pieces:
            self._size -= self._pieces.pop(next(iter(self._pieces)))[1]
        return Piece(plain), len(plain)
