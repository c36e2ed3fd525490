"""Every kind of damage that was found in real databases.

Each function takes the path of a database and changes the database in place. The
write-ahead log becomes part of the database. `DAMAGES` contains the kinds that affect
one session.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.database import Cell


def read(path: Path, key: str) -> bytes:
    """Return the stored bytes of a value."""
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("select cast(value as blob) from cursorDiskKV where key = ?", [key]).fetchone()
    if found is None:
        raise KeyError(key)
    return bytes(found[0])


def put(path: Path, key: str | None, value: Cell) -> None:
    """Insert or replace a value."""
    _execute(path, "insert into cursorDiskKV (key, value) values (?, ?)", key, value)


def remove(path: Path, key: str) -> None:
    """Delete a row."""
    _execute(path, "delete from cursorDiskKV where key = ?", key)


def empty_value(path: Path, key: str) -> None:
    """Set a value to NULL."""
    _execute(path, "update cursorDiskKV set value = null where key = ?", key)


def truncate_value(path: Path, key: str, size: int) -> None:
    """Truncate a value to ``size`` bytes."""
    _store_text(path, key, read(path, key)[:size])


def flip_byte(path: Path, key: str, offset: int) -> None:
    """Invert all bits of one byte of a value."""
    value = bytearray(read(path, key))
    value[offset] ^= 0xFF
    _store_text(path, key, bytes(value))


def add_bom(path: Path, key: str) -> None:
    """Insert a byte order mark before a value."""
    _store_text(path, key, b"\xef\xbb\xbf" + read(path, key))


def add_surrogate(path: Path, key: str, *, is_escaped: bool = True) -> None:
    """Append a lone surrogate to the text of a record, as an escape or as invalid UTF-8 bytes."""
    half = b"\\ud83d" if is_escaped else b"\xed\xa0\xbd"
    record = change_record(path, key, lambda record: record | {"text": f"{record.get('text', '')}HALF"})
    _store_text(path, key, dumps(record).encode().replace(b"HALF", half))


def store_as_blob(path: Path, key: str) -> None:
    """Store a value as BLOB instead of TEXT."""
    _execute(path, "update cursorDiskKV set value = cast(value as blob) where key = ?", key)


def change_record(path: Path, key: str, edit: Callable[[dict[str, Any]], Any]) -> Any:
    """Replace a record with the result of ``edit``. Return the new record."""
    record = edit(json.loads(read(path, key)))
    _execute(path, "update cursorDiskKV set value = ? where key = ?", dumps(record), key)
    return record


def null_headers(path: Path, composer_id: str) -> None:
    """Set the message list of a session to null. The messages remain."""
    change_record(
        path, f"composerData:{composer_id}", lambda record: record | {"fullConversationHeadersOnly": None}
    )


def repeat_header(path: Path, composer_id: str) -> None:
    """Repeat the first entry in the message list of a session."""
    change_record(
        path,
        f"composerData:{composer_id}",
        lambda record: record | {"fullConversationHeadersOnly": [*_headers(record)[:1], *_headers(record)]},
    )


def embed_large_file(path: Path, composer_id: str, *, megabytes: int = 50) -> None:
    """Embed a file of this size in the record of a session."""
    file = {"content": "0123456789abcdef" * (megabytes * 65536), "isNewlyCreated": False}
    change_record(
        path,
        f"composerData:{composer_id}",
        lambda record: record | {"originalFileStates": {"file:///home/dev/shop/dump.sql": file}},
    )


def mismatch_bubble(path: Path, key: str) -> None:
    """Change the id in a message, so that it differs from the key."""
    change_record(path, key, lambda record: record | {"bubbleId": "other-bubble"})


def break_header(path: Path, composer_id: str, value: Cell = '{"type":"head","composerId":') -> None:
    """Set a value in the session table to invalid JSON."""
    _execute(path, "update composerHeaders set value = ? where composerId = ?", value, composer_id)


def mismatch_header(path: Path, composer_id: str) -> None:
    """Change the session id in a value of the session table."""
    change_header(path, composer_id, lambda record: record | {"composerId": "other-composer"})


def change_header(path: Path, composer_id: str, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Replace a value in the session table with the result of ``edit``."""
    with closing(sqlite3.connect(path)) as db:
        [value] = db.execute(
            "select value from composerHeaders where composerId = ?", [composer_id]
        ).fetchone()
    _execute(
        path,
        "update composerHeaders set value = ? where composerId = ?",
        dumps(edit(json.loads(value))),
        composer_id,
    )


def repeat_session_list(path: Path) -> None:
    """Repeat every entry in the global session list."""
    with closing(sqlite3.connect(path)) as db:
        key = "composer.composerHeaders"
        [value] = db.execute("select value from ItemTable where key = ?", [key]).fetchone()
    heads = json.loads(value)["allComposers"]
    _execute(path, "update ItemTable set value = ? where key = ?", dumps({"allComposers": heads * 2}), key)


def drop_table(path: Path, table: str) -> None:
    """Drop a table."""
    if not table.isidentifier():
        raise ValueError(f"Not a table name: {table}")
    _execute(path, f"drop table {table}")


def truncate_file(path: Path, size: int) -> None:
    """Truncate a file to ``size`` bytes."""
    with path.open("r+b") as file:
        file.truncate(size)


def flip_file_byte(path: Path, offset: int) -> None:
    """Invert all bits of one byte of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        [byte] = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 0xFF]))


def _execute(path: Path, statement: str, *values: Cell) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement, values)


def _store_text(path: Path, key: str, value: bytes) -> None:
    """Store bytes as TEXT. They need not be UTF-8, because SQLite does not check them."""
    _execute(path, "update cursorDiskKV set value = cast(? as text) where key = ?", value, key)


def _headers(record: Mapping[str, Any]) -> list[Any]:
    return list(record.get("fullConversationHeadersOnly") or [])


# Arguments: the database, the id of a session and the id of one of its messages.
# The session can lose content; no other session may.
DAMAGES: Mapping[str, Callable[[Path, str, str], Any]] = MappingProxyType(
    {
        "data emptied": lambda db, composer_id, bubble_id: empty_value(db, f"composerData:{composer_id}"),
        "data removed": lambda db, composer_id, bubble_id: remove(db, f"composerData:{composer_id}"),
        "data truncated": lambda db, composer_id, bubble_id: truncate_value(
            db, f"composerData:{composer_id}", 100
        ),
        "data flipped": lambda db, composer_id, bubble_id: flip_byte(db, f"composerData:{composer_id}", 40),
        "data with a byte order mark": lambda db, composer_id, bubble_id: add_bom(
            db, f"composerData:{composer_id}"
        ),
        "data as a list": lambda db, composer_id, bubble_id: put(db, f"composerData:{composer_id}", "[]"),
        "data as a blob": lambda db, composer_id, bubble_id: store_as_blob(db, f"composerData:{composer_id}"),
        "message list null": lambda db, composer_id, bubble_id: null_headers(db, composer_id),
        "list with a repeated entry": lambda db, composer_id, bubble_id: repeat_header(db, composer_id),
        "message emptied": lambda db, composer_id, bubble_id: empty_value(
            db, f"bubbleId:{composer_id}:{bubble_id}"
        ),
        "message removed": lambda db, composer_id, bubble_id: remove(
            db, f"bubbleId:{composer_id}:{bubble_id}"
        ),
        "message truncated": lambda db, composer_id, bubble_id: truncate_value(
            db, f"bubbleId:{composer_id}:{bubble_id}", 60
        ),
        "message flipped": lambda db, composer_id, bubble_id: flip_byte(
            db, f"bubbleId:{composer_id}:{bubble_id}", 5
        ),
        "message with a byte order mark": lambda db, composer_id, bubble_id: add_bom(
            db, f"bubbleId:{composer_id}:{bubble_id}"
        ),
        "message with a lone surrogate": lambda db, composer_id, bubble_id: add_surrogate(
            db, f"bubbleId:{composer_id}:{bubble_id}"
        ),
        "message with a lone surrogate in bytes": lambda db, composer_id, bubble_id: add_surrogate(
            db, f"bubbleId:{composer_id}:{bubble_id}", is_escaped=False
        ),
        "message as a number": lambda db, composer_id, bubble_id: put(
            db, f"bubbleId:{composer_id}:{bubble_id}", 7
        ),
        "message with another id": lambda db, composer_id, bubble_id: mismatch_bubble(
            db, f"bubbleId:{composer_id}:{bubble_id}"
        ),
        "row without a key": lambda db, composer_id, bubble_id: put(db, None, "{}"),
        "head broken": lambda db, composer_id, bubble_id: break_header(db, composer_id),
        "head emptied": lambda db, composer_id, bubble_id: break_header(db, composer_id, None),
        "head of another session": lambda db, composer_id, bubble_id: mismatch_header(db, composer_id),
    }
)
