"""Damage to the store of a chat: missing blobs, changed blobs, reference cycles.

Each function takes the path of a ``store.db`` and changes the file in place.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.protobuf import encode_group, encode_message


def read_meta(store: Path) -> dict[str, Any]:
    """Return the metadata of a store with hex metadata."""
    with closing(sqlite3.connect(store)) as db:
        [value] = db.execute("select value from meta where key = '0'").fetchone()
    record: dict[str, Any] = json.loads(bytes.fromhex(value))
    return record


def read_root(store: Path) -> bytes:
    """Return the bytes of the current root."""
    with closing(sqlite3.connect(store)) as db:
        id = read_meta(store)["latestRootBlobId"]
        [data] = db.execute("select data from blobs where id = ?", [id]).fetchone()
    return bytes(data)


def set_root(store: Path, data: bytes) -> str:
    """Store bytes as a blob and make it the current root. Return its id."""
    id = sha256(data).hexdigest()
    record = read_meta(store) | {"latestRootBlobId": id}
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("insert or replace into blobs values (?, ?)", [id, data])
        db.execute("update meta set value = ? where key = '0'", [dumps(record).encode().hex()])
    return id


def drop_blob(store: Path, id: str) -> None:
    """Delete a blob. References to it remain."""
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("delete from blobs where id = ?", [id])


def flip_blob_byte(store: Path, id: str, offset: int = 0) -> None:
    """Invert all bits of one byte of a blob, so that its id is no longer its hash."""
    with closing(sqlite3.connect(store)) as db, db:
        [data] = db.execute("select data from blobs where id = ?", [id]).fetchone()
        changed = bytearray(data)
        changed[offset] ^= 0xFF
        db.execute("update blobs set data = ? where id = ?", [bytes(changed), id])


def truncate_root(store: Path, size: int | None = None) -> None:
    """Truncate the root, by default in the middle of the last field."""
    data = read_root(store)
    set_root(store, data[: len(data) - 5 if size is None else size])


def add_group(store: Path) -> None:
    """Append a field of the deprecated group type to the root."""
    set_root(store, read_root(store) + encode_group(50) + encode_message((1, b"\0" * 32)))


def add_archive_cycle(store: Path) -> None:
    """Add an archive that contains its own id."""
    id = sha256(b"circle").digest()
    with closing(sqlite3.connect(store)) as db, db:
        db.execute(
            "insert or replace into blobs values (?, ?)",
            [id.hex(), encode_message((1, id), (2, "again"), (4, id))],
        )
    set_root(store, read_root(store) + encode_message((13, id)))


def _first_message_id(store: Path) -> str:
    """Return the id in the first field of the root."""
    return read_root(store)[2:34].hex()


# Each function needs a store with hex metadata and messages by id.
DAMAGES: Mapping[str, Callable[[Path], None]] = MappingProxyType(
    {
        "message missing": lambda store: drop_blob(store, _first_message_id(store)),
        "message changed": lambda store: flip_blob_byte(store, _first_message_id(store)),
        "root missing": lambda store: drop_blob(store, read_meta(store)["latestRootBlobId"]),
        "root truncated": truncate_root,
        "group in the root": add_group,
        "archive cycle": add_archive_cycle,
    }
)
