"""Archives that several processes wrote at once, taken into one.

Each process writes what it reads into a small archive of its own; copying rows
from there is far cheaper than reading, so that one writer keeps up with many
readers.
"""

import sqlite3
from pathlib import Path

__all__ = ["merge"]

_CACHE = 16 * 1024  # KB of pages: enough for one who writes much, beside others who need memory meanwhile
_BY_UNIT = ("account", "naming", "link", "problem", "ledger", "raw", "excluded", "kept_row")
_FORGOTTEN = (
    "select 1 from main.forgotten f join shard.account a on a.platform = f.platform"
    " and f.id = coalesce(a.parent_id, a.id) limit 1"
)
_WORDS = {
    "message": ("kind", "tool", "model", "agent_id", "forked_from", "copied_from"),
    "response": ("model", "speed"),
}
_BY_ACCOUNT = ("message", "chunk", "amendment", "response", "edit", "child")


def merge(db: sqlite3.Connection, shard: Path) -> int:
    """Take a shard in, all of it or nothing. Returns by how much the numbers of its accounts have grown.

    Raises `sqlite3.IntegrityError` when in the meantime a unit of it was read, or a session of it forgotten,
    by somebody else.
    """
    db.execute(f"pragma main.cache_size = -{_CACHE}")
    db.execute("attach database ? as shard", [str(shard)])
    db.execute("pragma foreign_keys = off")  # what belongs together there is moved together
    try:
        db.execute("begin immediate")
        try:
            if db.execute(_FORGOTTEN).fetchone() is not None:
                raise sqlite3.IntegrityError("a session was forgotten while it was read")
            accounts = _copy(db)
        except BaseException:
            db.execute("rollback")
            raise
        db.execute("commit")
    finally:
        db.execute("pragma foreign_keys = on")
        db.execute("detach database shard")
    return accounts


def _copy(db: sqlite3.Connection) -> int:
    units, accounts, pieces = (
        int(db.execute(f"select coalesce(max(number), 0) from main.{table}").fetchone()[0])  # noqa: S608
        for table in ("unit", "account", "kept_piece")
    )
    _translate(db)
    _insert(db, "unit", {"number": f"number + {units}"})
    _insert(db, "kept_piece", {"number": f"number + {pieces}"})
    for table in _BY_UNIT:
        changed = {"unit": f"unit + {units}"}
        if table == "account":
            changed["number"] = f"number + {accounts}"
        elif table in ("ledger", "kept_row"):
            changed |= {"number": "null", "piece": f"piece + {pieces}"}
        elif table == "raw":
            changed["account"] = f"account + {accounts}"
        _insert(db, table, changed)
    for table in _BY_ACCOUNT:
        changed = {"account": f"account + {accounts}"}
        for name in _WORDS.get(table, ()):
            changed[name] = f"(select new from meaning where old = {name})"  # noqa: S608 - names are ours
        _insert(db, table, changed)
    return accounts


def _translate(db: sqlite3.Connection) -> None:
    """Find out which numbers the shard's words have here."""
    db.execute("insert or ignore into main.word (text) select text from shard.word")
    db.execute("create temp table if not exists meaning (old integer primary key, new integer)")
    db.execute("delete from meaning")
    db.execute(
        "insert into meaning select s.number, w.number from shard.word s join main.word w on w.text = s.text"
    )


def _insert(db: sqlite3.Connection, table: str, changed: dict[str, str]) -> None:
    """Copy a table's rows, with some columns written anew."""
    columns = [name for _, name, *_ in db.execute(f"pragma main.table_info({table})")]
    values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
    db.execute(f"insert into main.{table} select {values} from shard.{table}")  # noqa: S608 - names are ours
