"""The rows of a ``store.db``, and the account of what each of them gave."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from backscroll.model import Tally
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor_graph import Verdict
from backscroll.sources.cursor_graph.blobs import LARGEST_BLOB

__all__ = ["Rows", "count_blobs", "fetch", "survey"]

_TABLES = ("blobs", "meta")


class Rows(Struct, frozen=True):
    """What is in a store: its metadata, and its blobs by id and size."""

    absent: tuple[str, ...]  # tables that are not there
    strange: tuple[str, ...]  # tables that nobody here knows
    meta: list[tuple[Any, Any]]
    sizes: dict[str, int]
    empty: int  # blobs without an id or without content
    large: tuple[str, ...]  # blobs too large to be read


def survey(db: sqlite3.Connection) -> Rows:
    """Everything but the blobs' content."""
    named = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
    tables = [(as_bytes(name) or b"").decode("utf-8", "replace") for (name,) in db.execute(named)]
    meta = db.execute("select key, value from meta").fetchall() if "meta" in tables else []
    blobs = db.execute("select id, length(data) from blobs").fetchall() if "blobs" in tables else []
    sizes: dict[str, int] = {}
    large: list[str] = []
    empty = 0
    for raw_id, size in blobs:
        if raw_id is None or size is None:
            empty += 1
            continue
        id = (as_bytes(raw_id) or b"").decode("utf-8", "replace")
        if size > LARGEST_BLOB:
            large.append(id)
        else:
            sizes[id] = size
    absent = tuple(name for name in _TABLES if name not in tables)
    strange = tuple(name for name in tables if name not in _TABLES)
    return Rows(absent, strange, meta, sizes, empty, tuple(large))


def fetch(db: sqlite3.Connection, ids: Sequence[str], sizes: Mapping[str, int]) -> dict[str, bytes]:
    """Those blobs that are there."""
    found: dict[str, bytes] = {}
    for id in ids:
        if id in sizes:
            row = db.execute("select data from blobs where id = ?", [id]).fetchone()
            data = as_bytes(row[0]) if row else None
            if data is not None:
                found[id] = data
    return found


def count_blobs(rows: Rows, verdicts: Mapping[str, tuple[str, Verdict]], tally: Tally) -> None:
    """Count every blob once: by what it gave, or as part of a state that the session has left behind."""
    for id in rows.sizes:
        kind, verdict = verdicts.get(id, ("blob (older state)", "silent"))
        tally.count(kind, verdict)
    for id in rows.large:
        kind, _ = verdicts.get(id, ("blob (too large)", "problems"))
        tally.count(kind, "problems")
    if rows.empty:
        tally.count("blob (empty)", "silent", rows.empty)
