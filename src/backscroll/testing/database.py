"""SQLite files in the states that another program leaves them in.

A tool that is closed leaves one file. A tool that was killed, or that is still
running, leaves part of its rows, or all of them, in the write-ahead log beside it.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

__all__ = ["Cell", "Journal", "Leave", "living", "locked", "stamp", "statements", "write"]

Cell: TypeAlias = str | bytes | int | float | None
Journal: TypeAlias = Literal["wal", "delete"]
Leave: TypeAlias = Literal["main", "wal", "wal-only"]
Statement: TypeAlias = tuple[str, Sequence[Sequence[Any]]]


def write(
    path: Path,
    schema: str,
    rows: Iterable[Statement] = (),
    *,
    journal: Journal = "wal",
    leave: Leave = "main",
    shm: bool = False,
    mtime: int | None = None,
) -> None:
    """Create a database, or write into the one that is there.

    ``leave`` says where the rows are afterwards: all in the main file; in the
    ``-wal``, the schema in the main file; or everything in the ``-wal``, beside
    a main file of one empty page. ``shm`` leaves the ``-shm`` there too.
    ``mtime`` is in milliseconds.
    """
    if leave != "main" and journal != "wal":
        raise ValueError("only a database in WAL mode can leave rows in its log")
    path.parent.mkdir(parents=True, exist_ok=True)
    if leave == "main":
        with closing(_connect(path)) as db:
            db.execute(f"pragma journal_mode = {journal}")
            db.executescript(schema)
            _insert(db, rows)
    else:
        _leave_log(path, schema, rows, leave=leave, shm=shm)
    if mtime is not None:
        stamp(path, mtime)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma synchronous = off")
    return db


def _insert(db: sqlite3.Connection, rows: Iterable[Statement]) -> None:
    db.execute("begin")
    for statement, values in rows:
        db.executemany(statement, values)
    db.execute("commit")


def _leave_log(path: Path, schema: str, rows: Iterable[Statement], *, leave: Leave, shm: bool) -> None:
    """Copy the files away while they are open: closing the last connection would empty the log."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".building-") as folder:
        work = Path(folder) / "db"
        for suffix in ("", "-wal"):
            if Path(f"{path}{suffix}").exists():
                shutil.copyfile(f"{path}{suffix}", f"{work}{suffix}")
        with closing(_connect(work)) as db:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma wal_autocheckpoint = 0")
            db.executescript(schema)
            if leave == "wal":
                db.execute("pragma wal_checkpoint(truncate)").fetchall()
            _insert(db, rows)
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
                if suffix != "-shm" or shm:
                    shutil.copyfile(f"{work}{suffix}", f"{path}{suffix}")


@contextmanager
def living(path: Path, rows: Iterable[Statement] = ()) -> Iterator[sqlite3.Connection]:
    """The tool is running: its connection is open, its last rows are in the log, its ``-shm`` is there."""
    with closing(_connect(path)) as db:
        db.execute("pragma journal_mode = wal")
        db.execute("pragma wal_autocheckpoint = 0")
        # A WAL database gets its log and its index with the first write, not when it is opened.
        db.execute("pragma user_version = 1")
        _insert(db, rows)
        yield db


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process holds the database for itself, and does not let go."""
    with closing(_connect(path)) as db:
        # In WAL mode only this keeps readers out; elsewhere the transaction does.
        db.execute("pragma locking_mode = exclusive")
        db.execute("begin exclusive")
        yield
        db.execute("rollback")


def stamp(path: Path, mtime: int) -> None:
    """Give a file, and the log beside it, a modification time in milliseconds."""
    for suffix in ("", "-wal", "-shm"):
        beside = Path(f"{path}{suffix}")
        if beside.exists():
            os.utime(beside, ns=(mtime * 1_000_000, mtime * 1_000_000))


def statements(table: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Statement:
    """Rows for the named columns of a table, for `write`. Names come from this package, values are bound."""
    names = ", ".join(columns)
    marks = ", ".join("?" * len(columns))
    return f"insert or replace into {table} ({names}) values ({marks})", rows  # noqa: S608
