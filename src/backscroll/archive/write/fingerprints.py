"""Fingerprints of units and folders, compared at every refresh.

A refresh without changes loads this module and nothing else of the write side.
"""

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from backscroll.archive.connection import transaction

MAX_SINGLE_FOLDER_QUERIES = 500  # above this, one query reads all units of the root
_CURRENT = (
    "select iif(key = '', path, path || char(0) || key), iif(needs_retry, '?', fingerprint) from unit"
    " where source = ? and root = ? and not is_gone"
)
_EXCLUDED_BEFORE = (
    "select iif(key = '', path, path || char(0) || key), '?' from excluded_unit join unit on id = unit_id"
    " where source = ? and root = ? and not is_gone and patterns_hash <> ?"
)


class Fingerprints:
    """Stored fingerprints of units and folders.

    `patterns_hash` is the hash of the current exclusion patterns. What was stored under other
    patterns counts as changed.
    """

    def __init__(self, db: sqlite3.Connection, patterns_hash: bytes) -> None:
        self._db = db
        self._patterns_hash = patterns_hash

    def units(self, source: str, root: Path, folders: Collection[str] | None = None) -> dict[str, str]:
        """Return the fingerprint of every current unit below a root, or in some folders, by path.

        A unit that is a database row is named by path, NUL and key. The fingerprint of a unit
        that must be read again is "?", which no source produces.
        """
        if folders is None:
            return self._units(source, root)
        if len(folders) <= MAX_SINGLE_FOLDER_QUERIES:
            found: dict[str, str] = {}
            for folder in folders:
                found |= self._units(source, root, folder)
            return found
        wanted = set(folders)
        every = self._units(source, root)
        return {name: value for name, value in every.items() if folder_of(name.partition("\0")[0]) in wanted}

    def _units(self, source: str, root: Path, folder: str | None = None) -> dict[str, str]:
        condition, bounds = "", []
        if folder is not None:
            condition = " and path > ? and path < ? and instr(substr(path, ?), ?) = 0"
            bounds = [folder, f"{folder}\U0010ffff", len(folder) + 1, os.sep]
        found = dict(self._db.execute(_CURRENT + condition, [source, str(root), *bounds]))
        excluded = [source, str(root), self._patterns_hash, *bounds]
        found.update(self._db.execute(_EXCLUDED_BEFORE + condition, excluded))
        return found

    def folders(self, source: str, root: Path) -> dict[str, bytes | None]:
        """Return the fingerprint of every folder with units, by path; None if its units must be compared."""
        return dict(
            self._db.execute(
                "select path, iif(patterns_hash = ?, fingerprint, null) from folder_fingerprint"
                " where source = ? and root = ?",
                [self._patterns_hash, source, str(root)],
            )
        )

    def save_folders(
        self, source: str, root: Path, *, changed: Mapping[str, bytes], gone: Iterable[str]
    ) -> None:
        """Store fingerprints of folders whose units are all known, and delete folders without units.

        If another process writes or the disk is full, nothing is stored and the next refresh compares again.
        """
        with suppress(sqlite3.OperationalError), _no_busy_timeout(self._db), transaction(self._db):
            self._db.executemany(
                "insert or replace into folder_fingerprint values (?, ?, ?, ?, ?)",
                [(source, str(root), path, value, self._patterns_hash) for path, value in changed.items()],
            )
            self._db.executemany(
                "delete from folder_fingerprint where source = ? and root = ? and path = ?",
                [(source, str(root), path) for path in gone],
            )


def folder_of(path: str) -> str:
    """Return the folder of a path, with the separator at its end."""
    return path[: path.rindex(os.sep) + 1]


@contextmanager
def _no_busy_timeout(db: sqlite3.Connection) -> Iterator[None]:
    (before,) = db.execute("pragma busy_timeout").fetchone()
    db.execute("pragma busy_timeout = 0")
    try:
        yield
    finally:
        db.execute(f"pragma busy_timeout = {before}")
