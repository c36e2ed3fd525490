"""Pieces of messages as far as they were asked for, unpacked, and those used last kept at hand."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from backscroll.archive.bases import Plain
from backscroll.archive.bodies import Piece, listed
from backscroll.archive.frames import Frames, frames_in
from backscroll.model import Message

__all__ = ["Part", "Spot", "Unpacked"]

_MOST = 16 * 1024 * 1024  # bytes of pieces
_BASES = 4 * 1024 * 1024  # bytes of what some of them lean on
_TOGETHER = 1024 * 1024  # compressed bytes that are unpacked at once
_UNCUT = Frames((0, 0), (0, 0))

Spot = tuple[int, int]  # an account's number, and a position in it


class Part:
    """Messages of a piece that lie together in a frame, from a place in it on; taken apart when asked for."""

    def __init__(self, plain: bytes, first: int) -> None:
        self.plain = plain
        self._first = first

    @cached_property
    def _piece(self) -> Piece:
        return Piece(self.plain)

    def message(self, place: int, having: Sequence[bytes] = ()) -> Message | None:
        """The message at a place of the piece; None when there is none, or it lacks some bytes as packed."""
        place -= self._first
        if place >= len(self._piece) or (having and not self._piece.has(place, *having)):
            return None
        return self._piece.message(place)


class Unpacked:
    """The pieces of one state of the archive."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._plain = Plain(db, at_hand=_BASES)
        self._pieces: dict[Spot, _Held] = {}  # by the spot they begin at
        self._size = 0

    def parts(self, wanted: Mapping[Spot, Sequence[int]]) -> Iterator[tuple[Spot, Part, list[int]]]:
        """The parts that hold the messages at these places, by the spots that their pieces begin at.

        Each comes with its piece's spot and those of the places that are in it. Without a piece that somebody
        has just removed.
        """
        lacking: list[Spot] = []
        for first, places in wanted.items():
            held = self._pieces.pop(first, None)
            if held is not None:
                self._pieces[first] = held  # the one used last
            if held is None or held.lacks(places):
                lacking.append(first)
                continue
            for number, some in held.sorted(places).items():
                yield first, held.parts[number], some
        for first, held in self._read(lacking, wanted) if lacking else ():
            for number, some in held.sorted(wanted[first]).items():
                yield first, held.parts[number], some

    def _read(
        self, firsts: Sequence[Spot], wanted: Mapping[Spot, Sequence[int]]
    ) -> "Iterator[tuple[Spot, _Held]]":
        """Pieces from the archive with what is wanted of them unpacked, many at once unless that is much."""
        rows = self._db.execute(
            "select c.account, c.position, c.body from json_each(?) j cross join chunk c"
            " on c.account = json_extract(j.value, '$[0]') and c.position = json_extract(j.value, '$[1]')",
            [msgspec.json.encode(firsts).decode()],
        )
        some: dict[Spot, _Held] = {}
        packed: list[tuple[Spot, int, bytes]] = []
        for account, start, body in rows:
            first = account, start
            held = some[first] = self._pieces.get(first) or _Held(frames_in(body))
            packed += [(first, number, held.packed(body, number)) for number in held.lacks(wanted[first])]
            if sum(len(one) for *_, one in packed) > _TOGETHER:
                yield from self._unpack(some, packed)
                some, packed = {}, []
        yield from self._unpack(some, packed)

    def _unpack(
        self, some: "dict[Spot, _Held]", packed: Sequence[tuple[Spot, int, bytes]]
    ) -> "Iterable[tuple[Spot, _Held]]":
        every = self._plain.every([one for *_, one in packed])
        for (first, number, _), plain in zip(packed, every, strict=True):
            self._hold(first, some[first], number, plain)
        return some.items()

    def _hold(self, first: Spot, held: "_Held", number: int, plain: bytes) -> None:
        """Keep a part at hand, and let go of the pieces that were not used for longest."""
        if self._pieces.pop(first, None) is not None:
            self._size -= held.size
        held.add(number, plain)
        self._pieces[first] = held
        self._size += held.size
        while self._size > _MOST and self._pieces:
            self._size -= self._pieces.pop(next(iter(self._pieces))).size


class _Held:
    """A piece, and what is unpacked of it."""

    def __init__(self, frames: Frames | None) -> None:
        self._frames = frames
        self._number = (frames or _UNCUT).number
        self.parts: dict[int, Part] = {}  # by the number of the frame
        self.size = 0

    def lacks(self, places: Sequence[int]) -> list[int]:
        """The frames that hold messages at some of these places and are not unpacked."""
        return sorted({self._number(place) for place in places} - self.parts.keys())

    def sorted(self, places: Sequence[int]) -> dict[int, list[int]]:
        """Places by the frames that they are in."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for place in places:
            found[self._number(place)].append(place)
        return found

    def packed(self, body: bytes, number: int) -> bytes:
        """A frame of the piece's body."""
        return body if self._frames is None else self._frames.frame(body, number)

    def add(self, number: int, plain: bytes) -> None:
        """Take a frame that was unpacked."""
        if self._frames is None:
            self.parts[number] = Part(plain, 0)
        else:
            self.parts[number] = Part(listed(plain, self._frames, number), self._frames.places[number])
        self.size += len(plain)
