"""What is known of a session at the end of its unit, as it is kept."""

import sqlite3
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from backscroll.archive.bodies import compress, decompress
from backscroll.model import Addition, Closing

__all__ = ["OWN_TITLES", "best_title", "is_titled", "keep_title", "packed_closing"]


def packed_closing(db: sqlite3.Connection, account: int, closing: Closing) -> bytes:
    """A closing as it is kept; one that says only what is new is added to what was known."""
    if isinstance(closing, Addition):
        before = _closing(db, account)
        if before is not None:
            closing = closing.added_to(before)
    return compress(msgspec.msgpack.encode(closing))


# Titles that one from another file does not replace, the most deliberate first.
OWN_TITLES = ("custom-title", "desktop-title", "ai-title")


def best_title(closings: Sequence[Closing]) -> Closing | None:
    """Of what several accounts say of a session, the one with the title to take; the first when in doubt."""
    titled = [one for one in closings if is_titled(one)]
    known = {source: rank for rank, source in enumerate(OWN_TITLES)}
    return min(titled, key=lambda one: known.get(one.title_source or "", len(known)), default=None)


def is_titled(closing: Closing) -> bool:
    """Whether a session has a title that somebody gave it; its first words are only better than nothing."""
    return closing.title is not None and closing.title_source != "first message"


def keep_title(db: sqlite3.Connection, body: bytes, new: int) -> None:
    """Let a title stay that a kept closing has, where the account that takes its place has none."""
    before, now = _unpacked(body), _closing(db, new)
    if before is None or now is None or is_titled(now) or not is_titled(before):
        return
    kept = replace(now, title=before.title, title_source=before.title_source)
    body = compress(msgspec.msgpack.encode(kept))
    db.execute("update account set closing = ? where number = ?", [body, new])


def _closing(db: sqlite3.Connection, account: int) -> Closing | None:
    (body,) = db.execute("select closing from account where number = ?", [account]).fetchone()
    return _unpacked(body)


def _unpacked(body: bytes) -> Closing | None:
    return msgspec.msgpack.decode(decompress(body), type=Closing) if body else None
