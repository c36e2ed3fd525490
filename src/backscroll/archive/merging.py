"""Archives that several processes wrote at once, taken into one.

Each process writes what it reads into a small archive of its own; copying rows
from there is far cheaper than reading, so that one writer keeps up with many
readers.
"""

import sqlite3
from pathlib import Path

__all__ = ["merge"]

_BY_UNIT = ("account", "naming", "link", "problem", "ledger", "raw", "excluded")
_FORGOTTEN = (
    "select 1 from main.forgotten f join shard.account a on a.platform = f.platform"
    " and f.id = coalesce(a.parent_id, a.id) limit 1"
)
_BY_ACCOUNT = ("message", "chunk", "amendment", "response", "edit", "child")


def merge(db: sqlite3.Connection, shard: Path) -> None:
    """Take a shard in, all of it or nothing.

    Raises `sqlite3.IntegrityError` when in the meantime a unit of it was read, or a session of it forgotten,
    by somebody else.
    """
    db.execute("attach database ? as shard", [str(shard)])
    try:
        db.execute("begin immediate")
        try:
            if db.execute(_FORGOTTEN).fetchone() is not None:
                raise sqlite3.IntegrityError("a session was forgotten while it was read")
            _copy(db)
        except BaseException:
            db.execute("rollback")
            raise
        db.execute("commit")
    finally:
        db.execute("detach database shard")


def _copy(db: sqlite3.Connection) -> None:
    units, accounts = (
        db.execute(f"select coalesce(max(number), 0) from main.{table}").fetchone()[0]  # noqa: S608
        for table in ("unit", "account")
    )
    _insert(db, "unit", {"number": f"number + {units}"})
    for table in _BY_UNIT:
        changed = {"unit": f"unit + {units}"}
        if table == "account":
            changed["number"] = f"number + {accounts}"
        elif table == "ledger":
            changed["number"] = "null"
        _insert(db, table, changed)
    for table in _BY_ACCOUNT:
        _insert(db, table, {"account": f"account + {accounts}"})


def _insert(db: sqlite3.Connection, table: str, changed: dict[str, str]) -> None:
    """Copy a table's rows, with some columns written anew."""
    columns = [name for _, name, *_ in db.execute(f"pragma main.table_info({table})")]
    values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
    db.execute(f"insert into main.{table} select {values} from shard.{table}")  # noqa: S608 - names are ours
