"""Pieces of messages as far as they were asked for, unpacked, and those used last kept at hand."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from backscroll.archive.storage.codec import Piece, listed
from backscroll.archive.storage.delta import Plain
from backscroll.archive.storage.seekable import Frames, frames_in
from backscroll.model import Message

__all__ = ["Part", "Spot", "Unpacked"]

_MOST = 16 * 1024 * 1024  # bytes of pieces
_BASES = 4 * 1024 * 1024  # bytes of what some of them lean on
_TOGETHER = 1024 * 1024  # compressed bytes that are unpacked at once

Spot = tuple[int, int]  # an account's number, and a position in it


class Part:
    """Messages of a piece that lie together in a frame, from a place in it on; taken apart when asked for."""

    def __init__(self, plain: bytes, first: int) -> None:
        self._plain = plain
        self._first = first

    @cached_property
    def _piece(self) -> Piece:
        return Piece(self._plain)

    def messages(self, places: Sequence[int], having: Sequence[bytes] = ()) -> Iterator[tuple[int, Message]]:
        """Those at these places of the piece that are there, and have some bytes as they are packed."""
        if not all(some in self._plain for some in having):
            return
        first, piece = self._first, self._piece
        for place in places:
            if place - first < len(piece) and (not having or piece.has(place - first, *having)):
                yield place, piece.message(place - first)


class Unpacked:
    """The pieces of one state of the archive."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._plain = Plain(db, at_hand=_BASES)
        self._pieces: dict[Spot, _Held] = {}  # by the spot they begin at
        self._size = 0

    def parts(self, wanted: Mapping[Spot, Sequence[int]]) -> Iterator[tuple[Spot, Part, Sequence[int]]]:
        """The parts that hold the messages at these places, by the spots that their pieces begin at.

        Each comes with its piece's spot and those of the places that are in it. Without a piece that somebody
        has just removed.
        """
        lacking: list[Spot] = []
        for first, places in wanted.items():
            held = self._pieces.pop(first, None)
            if held is not None:
                self._pieces[first] = held  # the one used last
                frames = held.by_frame(places)
                if frames.keys() <= held.parts.keys():
                    for number, some in frames.items():
                        yield first, held.parts[number], some
                    continue
            lacking.append(first)
        for first, held, frames in self._read(lacking, wanted) if lacking else ():
            for number, some in frames.items():
                yield first, held.parts[number], some

    def _read(self, firsts: Sequence[Spot], wanted: Mapping[Spot, Sequence[int]]) -> "Iterator[_Read]":
        """Pieces from the archive with what is wanted of them unpacked, many at once unless that is much."""
        rows = self._db.execute(
            "select c.fragment_id, c.position, c.body from json_each(?) j cross join message_chunk c"
            " on c.fragment_id = json_extract(j.value, '$[0]') and c.position ="
            " json_extract(j.value, '$[1]')",
            [msgspec.json.encode(firsts).decode()],
        )
        read: list[_Read] = []
        bodies: list[bytes] = []
        size = 0
        for account, start, body in rows:
            held = self._pieces.get((account, start)) or _held(body, wanted[account, start])
            frames = held.by_frame(wanted[account, start])
            read.append(((account, start), held, frames))
            more = [held.frame(body, number) for number in frames if number not in held.parts]
            bodies += more
            size += sum(map(len, more))
            if size > _TOGETHER:
                self._unpack(read, bodies)
                yield from read
                read, bodies, size = [], [], 0
        self._unpack(read, bodies)
        yield from read

    def _unpack(self, read: "Sequence[_Read]", bodies: Sequence[bytes]) -> None:
        """Unpack those frames that pieces lack, in their order."""
        rest = iter(self._plain.every(bodies))
        for first, held, frames in read:
            for number in frames:
                if number not in held.parts:
                    self._hold(first, held, number, next(rest))

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
        self.parts: dict[int, Part] = {}  # by the number of the frame
        self.size = 0

    def by_frame(self, places: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """Places of messages by the frames that they are in."""
        if self._frames is None:
            return {0: places}
        found: defaultdict[int, list[int]] = defaultdict(list)
        for place in places:
            found[self._frames.number(place)].append(place)
        return found

    def frame(self, body: bytes, number: int) -> bytes:
        """A frame of the piece's body."""
        return body if self._frames is None else self._frames.frame(body, number)

    def add(self, number: int, plain: bytes) -> None:
        """Take a frame that was unpacked."""
        if self._frames is None:
            self.parts[number] = Part(plain, 0)
        else:
            self.parts[number] = Part(listed(plain, self._frames, number), self._frames.places[number])
        self.size += len(plain)


def _held(body: bytes, places: Sequence[int]) -> _Held:
    """A piece of which the messages at some places are wanted; whole when they are in most of its frames."""
    frames = frames_in(body)
    if frames is not None and 2 * len({frames.number(place) for place in places}) > len(frames.places) - 1:
        return _Held(None)
    return _Held(frames)


_Read = tuple[Spot, _Held, Mapping[int, Sequence[int]]]  # a piece, and by its frames what is wanted of it
