"""Archives that several processes wrote at once, taken into one.

Each process writes what it reads into a small archive of its own; copying rows
from there is far cheaper than reading, so that one writer keeps up with many
readers. Several are taken in together, table by table: rows are looked up by
numbers that are anything but in order, and the more of them come at once, the
fewer times a page of such an index is written.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

__all__ = ["merge", "merging"]

_CACHE = 8 * 1024  # KB of pages: enough for one who writes much, beside others who need memory meanwhile
# KB: while rows are put in, indexes by numbers in no order have most of their pages at hand; else each row
# has one of them read, and another written to make room for it.
_MERGE_CACHE = 24 * 1024
_BY_UNIT = (
    "fragment",
    "title_hint",
    "subagent_evidence",
    "problem",
    "source_event",
    "raw_segment",
    "excluded_unit",
    "raw_row",
)
_SHARD_CACHE = 256  # KB: what is in a shard is read once, in order
_WORDS = {
    "message": (
        "kind_string_id",
        "tool_string_id",
        "model_string_id",
        "agent_string_id",
        "forked_from_string_id",
        "copied_from_string_id",
    ),
    "response": ("model_string_id", "speed_string_id"),
}
_BY_ACCOUNT = ("message", "message_chunk", "message_update", "response", "edit", "subagent_link")


class _Shard(NamedTuple):
    """An attached archive, and by how much its numbers grow here."""

    name: str
    units: int
    accounts: int
    pieces: int


def merging(db: sqlite3.Connection) -> AbstractContextManager[None]:
    """While much is taken in: leave memory to those who read it."""
    return _holding(db, _CACHE)


def merge(db: sqlite3.Connection, shards: Sequence[Path]) -> list[int]:
    """Take up to eight shards in, all or none. Returns by how much the numbers of each one's accounts grow.

    Raises `sqlite3.IntegrityError` when in the meantime a unit of theirs was read, or a session of theirs
    forgotten, by somebody else.
    """
    with _holding(db, _MERGE_CACHE), _attached(db, shards) as names:
        db.execute("begin immediate")
        try:
            found = _measure(db, names)
            _copy(db, found)
        except BaseException:
            if db.in_transaction:
                db.execute("rollback")
            raise
        db.execute("commit")
    return [shard.accounts for shard in found]


@contextmanager
def _holding(db: sqlite3.Connection, size: int) -> Iterator[None]:
    """Have so many KB of pages in memory meanwhile."""
    (before,) = db.execute("pragma main.cache_size").fetchone()
    db.execute(f"pragma main.cache_size = -{size}")
    try:
        yield
    finally:
        db.execute(f"pragma main.cache_size = {before}")


@contextmanager
def _attached(db: sqlite3.Connection, shards: Sequence[Path]) -> Iterator[list[str]]:
    """Have shards at hand beside the archive, by names."""
    names: list[str] = []
    try:
        for place, path in enumerate(shards):
            db.execute(f"attach database ? as shard{place}", [str(path)])
            names.append(f"shard{place}")
            db.execute(f"pragma shard{place}.cache_size = -{_SHARD_CACHE}")
        db.execute("pragma foreign_keys = off")  # what belongs together there is moved together
        yield names
    finally:
        db.execute("pragma foreign_keys = on")
        for name in names:
            db.execute(f"detach database {name}")


def _measure(db: sqlite3.Connection, names: Sequence[str]) -> list[_Shard]:
    """How the shards are numbered here, one after the other."""
    found: list[_Shard] = []
    units, accounts, pieces = _last(db, "main")
    for name in names:
        forgotten = (
            f"select 1 from main.forgotten_session s join {name}.fragment f on f.platform = s.platform"  # noqa: S608
            " and s.external_id = coalesce(f.parent_external_id, f.external_id) limit 1"
        )
        if db.execute(forgotten).fetchone() is not None:
            raise sqlite3.IntegrityError("a session was forgotten while it was read")
        found.append(_Shard(name, units, accounts, pieces))
        more = _last(db, name)
        units, accounts, pieces = units + more[0], accounts + more[1], pieces + more[2]
    return found


def _last(db: sqlite3.Connection, name: str) -> tuple[int, int, int]:
    """The greatest numbers of units, accounts and pieces of rows."""
    units, accounts, pieces = (
        int(db.execute(f"select coalesce(max(id), 0) from {name}.{table}").fetchone()[0])  # noqa: S608
        for table in ("unit", "fragment", "blob_chunk")
    )
    return units, accounts, pieces


def _copy(db: sqlite3.Connection, shards: Sequence[_Shard]) -> None:
    for shard in shards:
        _translate(db, shard.name)
    for table in ("unit", "blob_chunk", *_BY_UNIT, *_BY_ACCOUNT):
        columns = [name for _, name, *_ in db.execute(f"pragma main.table_info({table})")]
        for shard in shards:
            changed = _changed(table, shard)
            values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
            # Nothing is left of a shard that does not fit, so that no page is noted to undo one statement.
            db.execute(
                f"insert or rollback into main.{table} select {values} from {shard.name}.{table}"  # noqa: S608
            )


def _changed(table: str, shard: _Shard) -> dict[str, str]:
    """The columns of a table that are written anew."""
    if table == "unit":
        return {"id": f"id + {shard.units}"}
    if table == "blob_chunk":
        return {"id": f"id + {shard.pieces}"}
    if table in _BY_ACCOUNT:
        meaning = f"select new from meaning_{shard.name} where old ="  # noqa: S608 - names are ours
        words = {name: f"iif({name} is null, null, ({meaning} {name}))" for name in _WORDS.get(table, ())}
        return {"fragment_id": f"fragment_id + {shard.accounts}", **words}
    changed = {"unit_id": f"unit_id + {shard.units}"}
    if table == "fragment":
        changed["id"] = f"id + {shard.accounts}"
    elif table in ("source_event", "raw_row"):
        changed |= {"id": "null", "blob_chunk_id": f"blob_chunk_id + {shard.pieces}"}
    elif table == "raw_segment":
        changed["delta_base_fragment_id"] = f"delta_base_fragment_id + {shard.accounts}"
    return changed


def _translate(db: sqlite3.Connection, shard: str) -> None:
    """Find out which numbers a shard's words have here."""
    db.execute(f"insert or ignore into main.string (text) select text from {shard}.string")  # noqa: S608
    db.execute(f"create temp table if not exists meaning_{shard} (old integer primary key, new integer)")
    db.execute(f"delete from meaning_{shard}")  # noqa: S608
    db.execute(
        f"insert into meaning_{shard} select s.id, m.id"  # noqa: S608
        f" from {shard}.string s join main.string m on m.text = s.text"
    )
