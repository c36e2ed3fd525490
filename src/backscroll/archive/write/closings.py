"""What is known of a session at the end of its unit, as it is kept."""

import sqlite3

import msgspec
from msgspec.structs import replace

from backscroll.archive.storage.codec import compress, decompress
from backscroll.model import Closing, ClosingUpdate
from backscroll.model.session import is_titled

__all__ = ["keep_title", "packed_closing"]


def packed_closing(db: sqlite3.Connection, account: int, closing: Closing) -> bytes:
    """A closing as it is kept; one that says only what is new is added to what was known."""
    if isinstance(closing, ClosingUpdate):
        before = _closing(db, account)
        if before is not None:
            closing = closing.added_to(before)
    return compress(msgspec.msgpack.encode(closing))


def keep_title(db: sqlite3.Connection, body: bytes, new: int) -> None:
    """Let a title stay that a kept closing has, where the account that takes its place has none."""
    before, now = _unpacked(body), _closing(db, new)
    if before is None or now is None or is_titled(now) or not is_titled(before):
        return
    kept = replace(now, title=before.title, title_source=before.title_source)
    body = compress(msgspec.msgpack.encode(kept))
    db.execute("update fragment set closing = ? where id = ?", [body, new])


def _closing(db: sqlite3.Connection, account: int) -> Closing | None:
    (body,) = db.execute("select closing from fragment where id = ?", [account]).fetchone()
    return _unpacked(body)


def _unpacked(body: bytes) -> Closing | None:
    return msgspec.msgpack.decode(decompress(body), type=Closing) if body else None
