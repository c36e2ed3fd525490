"""What happens to databases in real life: rows emptied, cut, flipped, doubled, or written by somebody else.

Every function takes the path of a database and changes it in place, which also
takes in whatever a log beside it held. `DAMAGES`
names the ones that hurt a single session, for tests that want them all.
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

__all__ = [
    "DAMAGES",
    "add_bom",
    "add_surrogate",
    "break_header",
    "change",
    "change_header",
    "cut",
    "cut_file",
    "double_header",
    "drop_table",
    "empty_value",
    "flip",
    "flip_file",
    "list_header_twice",
    "mismatch_bubble",
    "mismatch_header",
    "null_headers",
    "put",
    "read",
    "remove",
    "store_as_blob",
    "swell",
]


def read(path: Path, key: str) -> bytes:
    """The bytes of a value, as they are stored."""
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("select cast(value as blob) from cursorDiskKV where key = ?", [key]).fetchone()
    if found is None:
        raise KeyError(key)
    return bytes(found[0])


def put(path: Path, key: str | None, value: Cell) -> None:
    """Store a value under a key, new or known."""
    _run(path, "insert into cursorDiskKV (key, value) values (?, ?)", key, value)


def remove(path: Path, key: str) -> None:
    """Take a row away."""
    _run(path, "delete from cursorDiskKV where key = ?", key)


def empty_value(path: Path, key: str) -> None:
    """Leave the key, and NULL for its value."""
    _run(path, "update cursorDiskKV set value = null where key = ?", key)


def cut(path: Path, key: str, at: int) -> None:
    """Keep the first bytes of a value only."""
    _store_text(path, key, read(path, key)[:at])


def flip(path: Path, key: str, at: int) -> None:
    """Turn over all bits of one byte."""
    value = bytearray(read(path, key))
    value[at] ^= 0xFF
    _store_text(path, key, bytes(value))


def add_bom(path: Path, key: str) -> None:
    """Put a byte order mark before a value."""
    _store_text(path, key, b"\xef\xbb\xbf" + read(path, key))


def add_surrogate(path: Path, key: str, *, is_escaped: bool = True) -> None:
    """Put half of a character at the end of a record's text: escaped, or as the bytes no UTF-8 has."""
    half = b"\\ud83d" if is_escaped else b"\xed\xa0\xbd"
    record = change(path, key, lambda record: record | {"text": f"{record.get('text', '')}HALF"})
    _store_text(path, key, dumps(record).encode().replace(b"HALF", half))


def store_as_blob(path: Path, key: str) -> None:
    """The same bytes, as BLOB instead of TEXT."""
    _run(path, "update cursorDiskKV set value = cast(value as blob) where key = ?", key)


def change(path: Path, key: str, edit: Callable[[dict[str, Any]], Any]) -> Any:
    """Write back what an edit makes of a record. Returns it."""
    record = edit(json.loads(read(path, key)))
    _run(path, "update cursorDiskKV set value = ? where key = ?", dumps(record), key)
    return record


def null_headers(path: Path, composer_id: str) -> None:
    """A session whose list of messages is null, while its messages are there."""
    change(path, f"composerData:{composer_id}", lambda record: record | {"fullConversationHeadersOnly": None})


def double_header(path: Path, composer_id: str) -> None:
    """A session whose list names its first message twice."""
    change(
        path,
        f"composerData:{composer_id}",
        lambda record: record | {"fullConversationHeadersOnly": [*_headers(record)[:1], *_headers(record)]},
    )


def swell(path: Path, composer_id: str, *, megabytes: int = 50) -> None:
    """A session that embeds a file of this size."""
    file = {"content": "0123456789abcdef" * (megabytes * 65536), "isNewlyCreated": False}
    change(
        path,
        f"composerData:{composer_id}",
        lambda record: record | {"originalFileStates": {"file:///home/dev/shop/dump.sql": file}},
    )


def mismatch_bubble(path: Path, key: str) -> None:
    """A message that calls itself something else than its key does."""
    change(path, key, lambda record: record | {"bubbleId": "somebody-else"})


def break_header(path: Path, composer_id: str, value: Cell = '{"type":"head","composerId":') -> None:
    """A row of the session table whose value is not JSON."""
    _run(path, "update composerHeaders set value = ? where composerId = ?", value, composer_id)


def mismatch_header(path: Path, composer_id: str) -> None:
    """A row of the session table whose value names another session."""
    change_header(path, composer_id, lambda record: record | {"composerId": "somebody-else"})


def change_header(path: Path, composer_id: str, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Write back what an edit makes of a row's value in the session table."""
    with closing(sqlite3.connect(path)) as db:
        [value] = db.execute(
            "select value from composerHeaders where composerId = ?", [composer_id]
        ).fetchone()
    _run(
        path,
        "update composerHeaders set value = ? where composerId = ?",
        dumps(edit(json.loads(value))),
        composer_id,
    )


def list_header_twice(path: Path) -> None:
    """The frozen list of version 3 names every session twice."""
    with closing(sqlite3.connect(path)) as db:
        key = "composer.composerHeaders"
        [value] = db.execute("select value from ItemTable where key = ?", [key]).fetchone()
    heads = json.loads(value)["allComposers"]
    _run(path, "update ItemTable set value = ? where key = ?", dumps({"allComposers": heads * 2}), key)


def drop_table(path: Path, table: str) -> None:
    """Take a whole table away."""
    if not table.isidentifier():
        raise ValueError(f"not the name of a table: {table}")
    _run(path, f"drop table {table}")


def cut_file(path: Path, at: int) -> None:
    """Keep the first bytes of a file only."""
    with path.open("r+b") as file:
        file.truncate(at)


def flip_file(path: Path, at: int) -> None:
    """Turn over all bits of one byte of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        [byte] = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0xFF]))


def _run(path: Path, statement: str, *values: Cell) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement, values)


def _store_text(path: Path, key: str, value: bytes) -> None:
    """Bytes as TEXT even where they are not UTF-8: SQLite does not look."""
    _run(path, "update cursorDiskKV set value = cast(? as text) where key = ?", value, key)


def _headers(record: Mapping[str, Any]) -> list[Any]:
    return list(record.get("fullConversationHeadersOnly") or [])


# Each is called with the database, a session's id and the id of one of its messages,
# and may cost that session something; no other session may lose anything by it.
DAMAGES: Mapping[str, Callable[[Path, str, str], Any]] = MappingProxyType(
    {
        "data emptied": lambda db, cid, bid: empty_value(db, f"composerData:{cid}"),
        "data removed": lambda db, cid, bid: remove(db, f"composerData:{cid}"),
        "data cut": lambda db, cid, bid: cut(db, f"composerData:{cid}", 100),
        "data flipped": lambda db, cid, bid: flip(db, f"composerData:{cid}", 40),
        "data with a mark": lambda db, cid, bid: add_bom(db, f"composerData:{cid}"),
        "data as a list": lambda db, cid, bid: put(db, f"composerData:{cid}", "[]"),
        "data as a blob": lambda db, cid, bid: store_as_blob(db, f"composerData:{cid}"),
        "list null": lambda db, cid, bid: null_headers(db, cid),
        "list names one twice": lambda db, cid, bid: double_header(db, cid),
        "message emptied": lambda db, cid, bid: empty_value(db, f"bubbleId:{cid}:{bid}"),
        "message removed": lambda db, cid, bid: remove(db, f"bubbleId:{cid}:{bid}"),
        "message cut": lambda db, cid, bid: cut(db, f"bubbleId:{cid}:{bid}", 60),
        "message flipped": lambda db, cid, bid: flip(db, f"bubbleId:{cid}:{bid}", 5),
        "message with a mark": lambda db, cid, bid: add_bom(db, f"bubbleId:{cid}:{bid}"),
        "message with half a character": lambda db, cid, bid: add_surrogate(db, f"bubbleId:{cid}:{bid}"),
        "message with half a character in bytes": lambda db, cid, bid: add_surrogate(
            db, f"bubbleId:{cid}:{bid}", is_escaped=False
        ),
        "message as a number": lambda db, cid, bid: put(db, f"bubbleId:{cid}:{bid}", 7),
        "message under another name": lambda db, cid, bid: mismatch_bubble(db, f"bubbleId:{cid}:{bid}"),
        "row without a key": lambda db, cid, bid: put(db, None, "{}"),
        "head broken": lambda db, cid, bid: break_header(db, cid),
        "head emptied": lambda db, cid, bid: break_header(db, cid, None),
        "head of another": lambda db, cid, bid: mismatch_header(db, cid),
    }
)
