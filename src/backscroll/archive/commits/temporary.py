"""Copies of the tables in memory, for an archive that cannot be written."""

import sqlite3

from backscroll.archive.connection import ReadOnlyConnection

__all__ = ["use_temporary_tables"]

_KEYS = {"edit_scan": "fragment_id", "git_commit": "sha", "commit_link": "repository, sha"}


def use_temporary_tables(db: sqlite3.Connection) -> None:
    """Copy the tables once if the archive is read-only. SQLite prefers temporary tables of the same name."""
    if not isinstance(db, ReadOnlyConnection):
        return
    for table, key in _KEYS.items():
        if db.execute("select 1 from temp.sqlite_master where name = ?", [table]).fetchone() is None:
            db.execute(f"create temp table {table} as select * from main.{table}")  # noqa: S608 - names are ours
            db.execute(f"create unique index temp.{table}_key on {table}({key})")
