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
_BY_UNIT = ("account", "naming", "link", "problem", "ledger", "raw", "excluded", "kept_row")
_SHARD_CACHE = 256  # KB: what is in a shard is read once, in order
_WORDS = {
    "message": ("kind", "tool", "model", "agent_id", "forked_from", "copied_from"),
    "response": ("model", "speed"),
}
_BY_ACCOUNT = ("message", "chunk", "amendment", "response", "edit", "child")


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
            f"select 1 from main.forgotten f join {name}.account a on a.platform = f.platform"  # noqa: S608
            " and f.id = coalesce(a.parent_id, a.id) limit 1"
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
        int(db.execute(f"select coalesce(max(number), 0) from {name}.{table}").fetchone()[0])  # noqa: S608
        for table in ("unit", "account", "kept_piece")
    )
    return units, accounts, pieces


def _copy(db: sqlite3.Connection, shards: Sequence[_Shard]) -> None:
    for shard in shards:
        _translate(db, shard.name)
    for table in ("unit", "kept_piece", *_BY_UNIT, *_BY_ACCOUNT):
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
        return {"number": f"number + {shard.units}"}
    if table == "kept_piece":
        return {"number": f"number + {shard.pieces}"}
    if table in _BY_ACCOUNT:
        meaning = f"select new from meaning_{shard.name} where old ="  # noqa: S608 - names are ours
        words = {name: f"iif({name} is null, null, ({meaning} {name}))" for name in _WORDS.get(table, ())}
        return {"account": f"account + {shard.accounts}", **words}
    changed = {"unit": f"unit + {shard.units}"}
    if table == "account":
        changed["number"] = f"number + {shard.accounts}"
    elif table in ("ledger", "kept_row"):
        changed |= {"number": "null", "piece": f"piece + {shard.pieces}"}
    elif table == "raw":
        changed["account"] = f"account + {shard.accounts}"
    return changed


def _translate(db: sqlite3.Connection, shard: str) -> None:
    """Find out which numbers a shard's words have here."""
    db.execute(f"insert or ignore into main.word (text) select text from {shard}.word")  # noqa: S608
    db.execute(f"create temp table if not exists meaning_{shard} (old integer primary key, new integer)")
    db.execute(f"delete from meaning_{shard}")  # noqa: S608
    db.execute(
        f"insert into meaning_{shard} select s.number, w.number"  # noqa: S608
        f" from {shard}.word s join main.word w on w.text = s.text"
    )
