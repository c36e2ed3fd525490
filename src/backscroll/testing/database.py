"""SQLite files as another program leaves them.

A program that exits normally leaves one file. A program that was killed or is still
running leaves some or all rows in the write-ahead log.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

Cell: TypeAlias = str | bytes | int | float | None
Journal: TypeAlias = Literal["wal", "delete"]
RowLocation: TypeAlias = Literal["main", "wal", "wal-only"]
Statement: TypeAlias = tuple[str, Sequence[Sequence[Any]]]


def write(
    path: Path,
    schema: str,
    rows: Iterable[Statement] = (),
    *,
    journal: Journal = "wal",
    rows_in: RowLocation = "main",
    shm: bool = False,
    mtime: int | None = None,
) -> None:
    """Create a database or add rows to an existing one.

    ``rows_in`` selects the file that contains the rows: ``main`` is the main file and
    ``wal`` is the ``-wal`` file, with the schema in the main file. With ``wal-only``
    the ``-wal`` file contains everything and the main file is one empty page.
    ``shm`` keeps the ``-shm`` file. ``mtime`` is in milliseconds.
    """
    if rows_in != "main" and journal != "wal":
        raise ValueError("Only a database in WAL mode can have rows in its log.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if rows_in == "main":
        with closing(_connect(path)) as db:
            db.execute(f"pragma journal_mode = {journal}")
            db.executescript(schema)
            _insert(db, rows)
    else:
        _write_to_log(path, schema, rows, rows_in=rows_in, shm=shm)
    if mtime is not None:
        set_mtime(path, mtime)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma synchronous = off")
    return db


def _insert(db: sqlite3.Connection, rows: Iterable[Statement]) -> None:
    db.execute("begin")
    for statement, values in rows:
        db.executemany(statement, values)
    db.execute("commit")


def _write_to_log(
    path: Path, schema: str, rows: Iterable[Statement], *, rows_in: RowLocation, shm: bool
) -> None:
    """Write rows that stay in the log.

    The files are copied while the database is open, because closing it would empty the log.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".building-") as folder:
        work = Path(folder) / "db"
        for suffix in ("", "-wal"):
            if Path(f"{path}{suffix}").exists():
                shutil.copyfile(f"{path}{suffix}", f"{work}{suffix}")
        with closing(_connect(work)) as db:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma wal_autocheckpoint = 0")
            db.executescript(schema)
            if rows_in == "wal":
                db.execute("pragma wal_checkpoint(truncate)").fetchall()
            _insert(db, rows)
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
                if suffix != "-shm" or shm:
                    shutil.copyfile(f"{work}{suffix}", f"{path}{suffix}")


@contextmanager
def open_writer(path: Path, rows: Iterable[Statement] = ()) -> Iterator[sqlite3.Connection]:
    """Simulate a running program: an open connection, new rows in the log and a ``-shm`` file."""
    with closing(_connect(path)) as db:
        db.execute("pragma journal_mode = wal")
        db.execute("pragma wal_autocheckpoint = 0")
        # SQLite creates the -wal and -shm files at the first write, not when the database is opened.
        db.execute("pragma user_version = 1")
        _insert(db, rows)
        yield db


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a database, as another process would."""
    with closing(_connect(path)) as db:
        # In WAL mode an exclusive transaction alone does not block readers.
        db.execute("pragma locking_mode = exclusive")
        db.execute("begin exclusive")
        yield
        db.execute("rollback")


def set_mtime(path: Path, mtime: int) -> None:
    """Set the modification time of a file and its ``-wal`` and ``-shm`` files, in milliseconds."""
    for suffix in ("", "-wal", "-shm"):
        file = Path(f"{path}{suffix}")
        if file.exists():
            os.utime(file, ns=(mtime * 1_000_000, mtime * 1_000_000))


def insert_statement(table: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Statement:
    """Return an insert statement and its rows, for `write`."""
    names = ", ".join(columns)
    placeholders = ", ".join("?" * len(columns))
    # The names come from this package; the values are bound.
    return f"insert or replace into {table} ({names}) values ({placeholders})", rows  # noqa: S608
