"""Encode, decode and edit the closings of fragments: the facts that are known at the end of a read."""

import sqlite3

import msgspec
from msgspec.structs import replace

from backscroll.archive.storage.codec import compress, decompress
from backscroll.model import Closing
from backscroll.model.stream.closing import is_titled

__all__ = ["decode_closing", "encode_closing", "load_closing", "retain_title"]


def retain_title(db: sqlite3.Connection, body: bytes, fragment_id: int) -> None:
    """Copy the title of an encoded closing into a fragment that has none."""
    before, now = decode_closing(body), load_closing(db, fragment_id)
    if before is None or now is None or is_titled(now) or not is_titled(before):
        return
    titled = replace(now, title=before.title, title_source=before.title_source)
    db.execute("update fragment set closing = ? where id = ?", [encode_closing(titled), fragment_id])


def load_closing(db: sqlite3.Connection, fragment_id: int) -> Closing | None:
    """Return the closing of a fragment; None if it has none yet."""
    (body,) = db.execute("select closing from fragment where id = ?", [fragment_id]).fetchone()
    return decode_closing(body)


def decode_closing(body: bytes) -> Closing | None:
    """Decode a stored closing; None if the fragment has no closing yet."""
    return msgspec.msgpack.decode(decompress(body), type=Closing) if body else None


def encode_closing(closing: Closing) -> bytes:
    """Encode a closing for storage."""
    return compress(msgspec.msgpack.encode(closing))
