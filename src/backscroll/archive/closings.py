"""What is known of a session at the end of its unit, as it is kept."""

import sqlite3

import msgspec

from backscroll.archive.bodies import compress, decompress
from backscroll.model import Addition, Closing

__all__ = ["packed_closing"]


def packed_closing(db: sqlite3.Connection, account: int, closing: Closing) -> bytes:
    """A closing as it is kept; one that says only what is new is added to what was known."""
    if isinstance(closing, Addition):
        (before,) = db.execute("select closing from account where number = ?", [account]).fetchone()
        if before:
            closing = closing.added_to(msgspec.msgpack.decode(decompress(before), type=Closing))
    return compress(msgspec.msgpack.encode(closing))
