"""Folders: which of them look as they did when all of their files were known."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from backscroll.archive.connection import transaction

__all__ = ["folder_of", "known_looks", "settle"]


def folder_of(path: str) -> str:
    """The folder that a path lies in, with the separator at its end."""
    return path[: path.rindex(os.sep) + 1]


def known_looks(db: sqlite3.Connection, source: str, root: str, patterns: bytes) -> dict[str, bytes | None]:
    """Every folder below a root that has units, and how it looked; None when its units are to be compared.

    What was settled while other workspaces were excluded is to be compared, too.
    """
    return dict(
        db.execute(
            "select path, iif(patterns = ?, look, null) from folder where source = ? and root = ?",
            [patterns, source, root],
        )
    )


def settle(
    db: sqlite3.Connection,
    source: str,
    root: str,
    patterns: bytes,
    *,
    looks: Mapping[str, bytes],
    gone: Iterable[str],
) -> None:
    """Note how folders look whose units are all known, and that others have no unit any more.

    Where it cannot be noted at once, because of another process or a full disk, they are compared once more.
    """
    with suppress(sqlite3.OperationalError), _impatient(db), transaction(db):
        db.executemany(
            "insert or replace into folder values (?, ?, ?, ?, ?)",
            [(source, root, path, look, patterns) for path, look in looks.items()],
        )
        db.executemany(
            "delete from folder where source = ? and root = ? and path = ?",
            [(source, root, path) for path in gone],
        )


@contextmanager
def _impatient(db: sqlite3.Connection) -> Iterator[None]:
    """Meanwhile nobody is waited for."""
    (before,) = db.execute("pragma busy_timeout").fetchone()
    db.execute("pragma busy_timeout = 0")
    try:
        yield
    finally:
        db.execute(f"pragma busy_timeout = {before}")
