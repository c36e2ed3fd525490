"""What the archive holds, and whether it is whole."""

import sqlite3
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from backscroll.archive.errors import decode_errors
from backscroll.archive.storage.codec import decode_messages, hash_record, lacks_seek_table
from backscroll.archive.storage.delta import BodyReader
from backscroll.archive.storage.raw_rows import verify_rows

__all__ = ["Status", "status", "verify"]


class Status(Struct):
    """The archive in numbers."""

    path: str
    size: int
    schema: int
    sessions: int
    subagents: int
    messages: int
    units: int
    gone: int  # units that the tools no longer have
    problems: int
    kept_bytes: int  # of original files
    kept_size: int  # what they take
    rows: int  # of databases
    rows_bytes: int  # what is in them
    rows_size: int  # what they take


def status(db: sqlite3.Connection, path: Path) -> Status:
    """Count what there is."""

    def one(query: str) -> int:
        return int(db.execute(query).fetchone()[0])

    return Status(
        path=str(path),
        size=sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*")),
        schema=one("pragma user_version"),
        sessions=one("select count(*) from conversations where visibility in ('listed', 'archived')"),
        subagents=one("select count(*) from subagent"),
        messages=one("select coalesce(sum(message_count), 0) from fragment where status = 'current'"),
        units=one("select count(*) from unit"),
        gone=one("select count(*) from unit where is_gone"),
        problems=one("select count(*) from problem"),
        kept_bytes=one("select coalesce(sum(size), 0) from raw_segment"),
        kept_size=one("select coalesce(sum(length(body)), 0) from raw_segment"),
        rows=one("select count(*) from raw_row"),
        rows_bytes=one("select coalesce(sum(size), 0) from raw_row"),
        rows_size=one("select coalesce(sum(length(body)), 0) from blob_chunk"),
    )


def verify(db: sqlite3.Connection) -> list[str]:
    """Derive hashes and counts anew; what does not agree is said in a sentence each."""
    found = [
        f"the database is damaged: {row[0]}" for row in db.execute("pragma quick_check") if row[0] != "ok"
    ]
    found += [f"a row of {row[0]} points nowhere" for row in db.execute("pragma foreign_key_check")]
    plain = BodyReader(db)
    for unit, offset, digest, *kept in db.execute(
        "select unit_id, offset, sha256, delta_base_unit_id, delta_base_fragment_id, body from raw_segment"
    ):
        try:
            is_whole = sha256(plain.decode_segment(*kept)).digest() == digest
        except decode_errors():
            is_whole = False
        if not is_whole:
            found.append(f"the original of unit {unit} is damaged at byte {offset}")
    found += verify_rows(db)
    for account, count, id_ in db.execute(
        "select id, message_count, external_id from fragment where status = 'current'"
    ).fetchall():
        try:
            found += _verify_account(db, account, count, id_)
        except decode_errors():
            found.append(f"the messages of account {account} are damaged")
    return found


def _verify_account(db: sqlite3.Connection, account: int, count: int, id_: str) -> list[str]:
    """Whether an account's messages are all there, and are the ones its rows speak of."""
    query = "select position, record_hash from message where fragment_id = ?"
    records = dict(db.execute(query, [account]).fetchall())
    if len(records) != count:
        return [f"account {account} has {len(records)} rows of {count} messages"]
    query = "select position from message_update where fragment_id = ?"
    amended = {place for (place,) in db.execute(query, [account])}
    place = 0
    plain = BodyReader(db)
    query = "select position, body from message_chunk where fragment_id = ? order by position"
    chunks = db.execute(query, [account])
    for first, body in chunks:
        if first != place:
            return [f"account {account} lacks the messages from {place} to {first}"]
        messages = decode_messages(plain.decode(body))
        if lacks_seek_table(body):
            return [f"the messages of account {account} are damaged"]
        for message in messages:
            if place not in amended and records.get(place) != hash_record(message.id, id_):
                return [f"message {place} of account {account} is not the one its row speaks of"]
            place += 1
    return [] if place == count else [f"account {account} ends at message {place} of {count}"]
