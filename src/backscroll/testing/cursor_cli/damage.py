"""What happens to a chat's store: blobs lost, changed, or naming each other in circles.

Every function takes the path of a ``store.db`` and changes it in place.
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

__all__ = [
    "DAMAGES",
    "add_circle",
    "add_group",
    "cut_root",
    "drop_blob",
    "flip_blob",
    "read_meta",
    "root_of",
    "set_root",
]


def read_meta(store: Path) -> dict[str, Any]:
    """The metadata of a store that keeps it as hex."""
    with closing(sqlite3.connect(store)) as db:
        [value] = db.execute("select value from meta where key = '0'").fetchone()
    record: dict[str, Any] = json.loads(bytes.fromhex(value))
    return record


def root_of(store: Path) -> bytes:
    """The bytes of the root that the metadata names."""
    with closing(sqlite3.connect(store)) as db:
        id = read_meta(store)["latestRootBlobId"]
        [data] = db.execute("select data from blobs where id = ?", [id]).fetchone()
    return bytes(data)


def set_root(store: Path, data: bytes) -> str:
    """Keep these bytes as a blob and let the metadata name it. Returns its id."""
    id = sha256(data).hexdigest()
    record = read_meta(store) | {"latestRootBlobId": id}
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("insert or replace into blobs values (?, ?)", [id, data])
        db.execute("update meta set value = ? where key = '0'", [dumps(record).encode().hex()])
    return id


def drop_blob(store: Path, id: str) -> None:
    """Lose a blob that others still name."""
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("delete from blobs where id = ?", [id])


def flip_blob(store: Path, id: str, at: int = 0) -> None:
    """Turn over all bits of one byte, so that the blob is no longer what its id says."""
    with closing(sqlite3.connect(store)) as db, db:
        [data] = db.execute("select data from blobs where id = ?", [id]).fetchone()
        changed = bytearray(data)
        changed[at] ^= 0xFF
        db.execute("update blobs set data = ? where id = ?", [bytes(changed), id])


def cut_root(store: Path, at: int | None = None) -> None:
    """A root that ends in the middle of a field."""
    data = root_of(store)
    set_root(store, data[: len(data) - 5 if at is None else at])


def add_group(store: Path) -> None:
    """A root with a field of the abandoned group type behind its messages."""
    set_root(store, root_of(store) + encode_group(50) + encode_message((1, b"\0" * 32)))


def add_circle(store: Path) -> None:
    """An archive that names itself among the messages it keeps."""
    id = sha256(b"circle").digest()
    with closing(sqlite3.connect(store)) as db, db:
        db.execute(
            "insert or replace into blobs values (?, ?)",
            [id.hex(), encode_message((1, id), (2, "again"), (4, id))],
        )
    set_root(store, root_of(store) + encode_message((13, id)))


def _first_message(store: Path) -> str:
    """The id behind the tag of the root's first field."""
    return root_of(store)[2:34].hex()


# Each is called with the path of a store that keeps its metadata as hex and its messages by id.
DAMAGES: Mapping[str, Callable[[Path], None]] = MappingProxyType(
    {
        "a message lost": lambda store: drop_blob(store, _first_message(store)),
        "a message changed": lambda store: flip_blob(store, _first_message(store)),
        "the root lost": lambda store: drop_blob(store, read_meta(store)["latestRootBlobId"]),
        "the root cut": cut_root,
        "a group in the root": add_group,
        "an archive in a circle": add_circle,
    }
)
