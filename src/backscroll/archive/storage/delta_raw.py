"""What a file's bytes lean on: the messages that were read from it, which say most of it already."""

import sqlite3
from bisect import bisect_right

from backscroll.archive.storage.codec import Chunk, compress
from backscroll.archive.storage.delta import BodyReader, encode_message_delta
from backscroll.model import Message

__all__ = ["RawDeltaBase", "delta_compress_file"]

_MOST = 2 * 1024 * 1024  # bytes of messages that a piece of a file leans on
_LINE = "line "
_JSON_LINES = ".jsonl"


class RawDeltaBase:
    """The messages of one reading of a file, in the pieces that they were written in."""

    def __init__(self, db: sqlite3.Connection, path: str) -> None:
        self._db = db
        self._has_lines = path.endswith(_JSON_LINES)
        self._plain = BodyReader(db, max_cache_bytes=2 * _MOST)
        self._accounts: set[int] = set()
        self._positions: list[int] = []
        self._lines: list[int] = []  # where in the file each piece begins
        self._sizes: list[int] = []
        self._base: tuple[tuple[int, int], bytes] | None = None  # what was leant on last, and its places

    def add_chunk(self, account: int, position: int, first: Message, data: bytes) -> None:
        """Take a piece that was written, with its first message."""
        if not first.origin.place.startswith(_LINE):
            return
        self._accounts.add(account)
        self._positions.append(position)
        self._lines.append(int(first.origin.place.removeprefix(_LINE)))
        self._sizes.append(len(data))
        self._plain.cache((account, position), data)

    def encode_segment(self, data: bytes, line: int, lines: int | None) -> tuple[int | None, bytes]:
        """A piece of the file as it is kept, and the account that it leans on.

        It begins in a line and has so many of them; None when it has all that are left.
        """
        account = self._account()
        if account is None:
            return None, compress(data)
        begin = max(0, bisect_right(self._lines, line) - 1)
        end = len(self._lines) if lines is None else bisect_right(self._lines, line + lines)
        first, last = self._places(begin, end)
        told = self._pieces(account, first, last)
        return account, encode_message_delta(data, told, first=first, last=last, has_lines=self._has_lines)

    def encode_checkpoint(self, state: bytes) -> bytes:
        """What must be remembered to go on reading the file, as it is kept: mostly ids of its messages."""
        account = self._account()
        if account is None:
            return compress(state)
        first, last = self._places(0, len(self._positions))
        return encode_message_delta(state, self._pieces(account, first, last), first=first, last=last)

    def _pieces(self, account: int, first: int, last: int) -> bytes:
        if self._base is None or self._base[0] != (first, last):
            self._base = (first, last), self._plain.read_chunks(account, first, last)
        return self._base[1]

    def _account(self) -> int | None:
        """The one account that the file is told by."""
        if len(self._accounts) != 1:  # of a file that tells of many sessions, such as a log of prompts
            return None
        (account,) = self._accounts
        if self._base is not None:
            return account
        # An account that is told as it was before is dropped again.
        found = self._db.execute("select 1 from fragment where id = ?", [account]).fetchone()
        return account if found is not None else None

    def _places(self, begin: int, end: int) -> tuple[int, int]:
        """The positions of the first and the last of these pieces, or of as many as may be."""
        last, size = begin, self._sizes[begin]
        while last + 1 < end and size + self._sizes[last + 1] <= _MOST:
            last += 1
            size += self._sizes[last]
        return self._positions[begin], self._positions[last]

    @property
    def first_line(self) -> int:
        """Where the first message stands."""
        return self._lines[0] if self._lines else 0


def _told_of(db: sqlite3.Connection, unit: int) -> RawDeltaBase:
    """What was told of a file in all readings of it, except before it was rewritten."""
    (path,) = db.execute("select path from unit where id = ?", [unit]).fetchone()
    told = RawDeltaBase(db, path)
    rows = db.execute(
        "select c.fragment_id, c.position, c.body from fragment f"
        " join message_chunk c on c.fragment_id = f.id"
        " where f.unit_id = ? and f.status = 'current' order by c.fragment_id, c.position",
        [unit],
    )
    plain = BodyReader(db)
    for account, position, body in rows:
        data = plain.decode(body)
        told.add_chunk(account, position, Chunk(data).message(0), data)
    return told


def delta_compress_file(db: sqlite3.Connection, unit: int) -> None:
    """After a file was told anew: have those pieces of it lean on what was told that lean on nothing."""
    told, plain = _told_of(db, unit), BodyReader(db)
    line = 1
    rows = db.execute(
        "select rowid, delta_base_unit_id, delta_base_fragment_id from raw_segment"
        " where unit_id = :unit and version = (select max(version) from raw_segment where unit_id = :unit)"
        " order by offset",
        {"unit": unit},
    )
    for row, base, account in rows.fetchall():
        (body,) = db.execute("select body from raw_segment where rowid = ?", [row]).fetchone()
        data = plain.decode_segment(base, account, body)
        lines = data.count(b"\n")
        if base is None and account is None:
            account, leaning = told.encode_segment(data, line, lines)
            if len(leaning) < len(body):
                query = "update raw_segment set delta_base_fragment_id = ?, body = ? where rowid = ?"
                db.execute(query, [account, leaning, row])
        line += lines
