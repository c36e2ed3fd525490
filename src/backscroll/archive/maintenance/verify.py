"""Check the archive: structure, hashes of originals, and messages against their rows."""

import sqlite3
from hashlib import sha256

from backscroll.archive.errors import decode_errors
from backscroll.archive.storage.codec import decode_messages, hash_record, lacks_seek_table
from backscroll.archive.storage.delta import BodyReader
from backscroll.archive.storage.raw_rows import verify_rows
from backscroll.model.text import pluralize

__all__ = ["verify"]


def verify(db: sqlite3.Connection) -> list[str]:
    """Return one sentence per inconsistency."""
    found = [
        f"the database is damaged: {row[0]}" for row in db.execute("pragma quick_check") if row[0] != "ok"
    ]
    found += [f"a row of {row[0]} refers to a missing row" for row in db.execute("pragma foreign_key_check")]
    reader = BodyReader(db)
    for unit_id, offset, digest, *stored in db.execute(
        "select unit_id, offset, sha256, delta_base_unit_id, delta_base_fragment_id, body from raw_segment"
    ):
        try:
            is_intact = sha256(reader.decode_segment(*stored)).digest() == digest
        except decode_errors():
            is_intact = False
        if not is_intact:
            found.append(f"the original of unit {unit_id} is damaged at byte {offset}")
    found += verify_rows(db)
    for fragment_id, count, session_id in db.execute(
        "select id, message_count, external_id from fragment where status = 'current'"
    ).fetchall():
        try:
            found += _verify_fragment(db, fragment_id, count, session_id)
        except decode_errors():
            found.append(f"the messages of fragment {fragment_id} are damaged")
    return found


def _verify_fragment(db: sqlite3.Connection, fragment_id: int, count: int, session_id: str) -> list[str]:
    """Check that a fragment's chunks contain exactly the messages of its rows."""
    query = "select position, record_hash from message where fragment_id = ?"
    records = dict(db.execute(query, [fragment_id]).fetchall())
    if len(records) != count:
        return [
            f"fragment {fragment_id} has {pluralize(len(records), 'row')} of {pluralize(count, 'message')}"
        ]
    query = "select position from message_update where fragment_id = ?"
    updated = {position for (position,) in db.execute(query, [fragment_id])}
    position = 0
    reader = BodyReader(db)
    query = "select position, body from message_chunk where fragment_id = ? order by position"
    for first, body in db.execute(query, [fragment_id]):
        if first != position:
            return [f"fragment {fragment_id} lacks the messages from {position} to {first}"]
        messages = decode_messages(reader.decode(body))
        if lacks_seek_table(body):
            return [f"the messages of fragment {fragment_id} are damaged"]
        for message in messages:
            if position not in updated and records.get(position) != hash_record(message.id, session_id):
                return [f"message {position} of fragment {fragment_id} does not match its row"]
            position += 1
    return [] if position == count else [f"fragment {fragment_id} ends at message {position} of {count}"]
