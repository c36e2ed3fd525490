"""Merge shards: small archives that reader processes write in parallel.

Copying rows is far cheaper than parsing, so one writer keeps up with many readers. Several shards are merged
together, table by table: indexes on hashes are written in random order, and with more rows at once each index
page is written fewer times.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

SYNC_CACHE_KB = 8 * 1024  # between merges, while the readers need the memory
# While rows are inserted, most pages of the indexes on hashes stay in memory. Otherwise every row reads one
# page and evicts another that must be written first.
MERGE_CACHE_KB = 24 * 1024
SHARD_CACHE_KB = 256  # a shard is read once, in order
_UNIT_TABLES = (
    "fragment",
    "title_hint",
    "subagent_evidence",
    "problem",
    "source_event",
    "raw_segment",
    "excluded_unit",
    "raw_row",
)
_FRAGMENT_TABLES = (
    "message",
    "message_chunk",
    "message_update",
    "response",
    "edit",
    "subagent_link",
    "reported_usage",
    "last_record",
)
_STRING_COLUMNS = {
    "message": (
        "kind_string_id",
        "tool_string_id",
        "model_string_id",
        "agent_string_id",
        "forked_from_string_id",
        "copied_from_string_id",
    ),
    "response": ("model_string_id", "speed_string_id"),
    "reported_usage": ("model_string_id",),
}


class _Shard(NamedTuple):
    """An attached shard and the offsets that are added to its ids."""

    name: str
    units: int
    fragments: int
    blob_chunks: int


def reduced_page_cache(db: sqlite3.Connection) -> AbstractContextManager[None]:
    """Limit SQLite's page cache during a sync with many readers."""
    return _page_cache(db, SYNC_CACHE_KB)


def merge_shards(db: sqlite3.Connection, shards: Sequence[Path]) -> list[int]:
    """Merge up to eight shards, all or none. Return the offset added to each shard's fragment ids.

    Raise `sqlite3.IntegrityError` if another process stored one of their units, or forgot one of their
    sessions, in the meantime.
    """
    with _page_cache(db, MERGE_CACHE_KB), _attached(db, shards) as names:
        db.execute("begin immediate")
        try:
            found = _offsets(db, names)
            _copy(db, found)
        except BaseException:
            if db.in_transaction:
                db.execute("rollback")
            raise
        db.execute("commit")
    return [shard.fragments for shard in found]


@contextmanager
def _page_cache(db: sqlite3.Connection, size_kb: int) -> Iterator[None]:
    (before,) = db.execute("pragma main.cache_size").fetchone()
    db.execute(f"pragma main.cache_size = -{size_kb}")
    try:
        yield
    finally:
        db.execute(f"pragma main.cache_size = {before}")


@contextmanager
def _attached(db: sqlite3.Connection, shards: Sequence[Path]) -> Iterator[list[str]]:
    """Attach shards and yield their schema names."""
    names: list[str] = []
    try:
        for index, path in enumerate(shards):
            db.execute(f"attach database ? as shard{index}", [str(path)])
            names.append(f"shard{index}")
            db.execute(f"pragma shard{index}.cache_size = -{SHARD_CACHE_KB}")
        db.execute("pragma foreign_keys = off")  # rows that refer to each other are copied together
        yield names
    finally:
        db.execute("pragma foreign_keys = on")
        for name in names:
            db.execute(f"detach database {name}")


def _offsets(db: sqlite3.Connection, names: Sequence[str]) -> list[_Shard]:
    """Assign each shard a range of ids after those of the archive and of the shards before it."""
    found: list[_Shard] = []
    units, fragments, blob_chunks = _max_ids(db, "main")
    for name in names:
        forgotten = (
            f"select 1 from main.forgotten_session s join {name}.fragment f on f.platform = s.platform"  # noqa: S608
            " and s.external_id = coalesce(f.parent_external_id, f.external_id) limit 1"
        )
        if db.execute(forgotten).fetchone() is not None:
            raise sqlite3.IntegrityError("a session was forgotten while it was read")
        found.append(_Shard(name, units, fragments, blob_chunks))
        more = _max_ids(db, name)
        units, fragments, blob_chunks = units + more[0], fragments + more[1], blob_chunks + more[2]
    return found


def _max_ids(db: sqlite3.Connection, schema: str) -> tuple[int, int, int]:
    """Return the greatest ids of units, fragments and blob chunks."""
    units, fragments, blob_chunks = (
        int(db.execute(f"select coalesce(max(id), 0) from {schema}.{table}").fetchone()[0])  # noqa: S608
        for table in ("unit", "fragment", "blob_chunk")
    )
    return units, fragments, blob_chunks


def _copy(db: sqlite3.Connection, shards: Sequence[_Shard]) -> None:
    for shard in shards:
        _map_strings(db, shard.name)
    for table in ("unit", "blob_chunk", *_UNIT_TABLES, *_FRAGMENT_TABLES):
        columns = [name for _, name, *_ in db.execute(f"pragma main.table_info({table})")]
        for shard in shards:
            changed = _changed_columns(table, shard)
            values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
            # A conflict rolls back the whole merge, so SQLite needs no statement journal.
            db.execute(
                f"insert or rollback into main.{table} select {values} from {shard.name}.{table}"  # noqa: S608
            )


def _changed_columns(table: str, shard: _Shard) -> dict[str, str]:
    """Return the SQL expressions of the columns that change when a row is copied."""
    if table == "unit":
        return {"id": f"id + {shard.units}"}
    if table == "blob_chunk":
        return {"id": f"id + {shard.blob_chunks}"}
    if table in _FRAGMENT_TABLES:
        new_id = f"select new_id from string_map_{shard.name} where old_id ="  # noqa: S608 - names are ours
        strings = {
            name: f"iif({name} is null, null, ({new_id} {name}))" for name in _STRING_COLUMNS.get(table, ())
        }
        return {"fragment_id": f"fragment_id + {shard.fragments}", **strings}
    changed = {"unit_id": f"unit_id + {shard.units}"}
    if table == "fragment":
        changed["id"] = f"id + {shard.fragments}"
    elif table in ("source_event", "raw_row"):
        changed |= {"id": "null", "blob_chunk_id": f"blob_chunk_id + {shard.blob_chunks}"}
    elif table == "raw_segment":
        changed["delta_base_fragment_id"] = f"delta_base_fragment_id + {shard.fragments}"
    return changed


def _map_strings(db: sqlite3.Connection, shard: str) -> None:
    """Add a shard's strings to the archive and map their ids in a temporary table."""
    db.execute(f"insert or ignore into main.string (text) select text from {shard}.string")  # noqa: S608
    db.execute(
        f"create temp table if not exists string_map_{shard} (old_id integer primary key, new_id integer)"
    )
    db.execute(f"delete from string_map_{shard}")  # noqa: S608
    db.execute(
        f"insert into string_map_{shard} select s.id, m.id"  # noqa: S608
        f" from {shard}.string s join main.string m on m.text = s.text"
    )
