"""Units as they are compared at every refresh: nothing but where they are and their fingerprints."""

import os
import sqlite3
from collections.abc import Collection

from backscroll.archive.write.folder_fingerprints import folder_of

__all__ = ["current_units"]

_FEW = 500  # folders that are asked for one by one
_CURRENT = (
    "select iif(key = '', path, path || char(0) || key), iif(is_retried, '?', fingerprint) from unit"
    " where source = ? and root = ? and not is_gone"
)
_PASSED_OVER = (
    "select iif(key = '', path, path || char(0) || key), '?' from excluded join unit on number = unit"
    " where source = ? and root = ? and not is_gone and patterns <> ?"
)


def current_units(
    db: sqlite3.Connection, source: str, root: str, patterns: bytes, folders: Collection[str] | None = None
) -> dict[str, str]:
    """The fingerprint of every unit below a root that was there the last time, by path; or only in folders.

    After the path of one that has a key stand a NUL and the key. The fingerprint of one that is to be
    read again is a question mark, which no source makes.
    """
    if folders is None:
        return _current(db, source, root, patterns)
    if len(folders) <= _FEW:
        found: dict[str, str] = {}
        for folder in folders:
            found |= _current(db, source, root, patterns, folder)
        return found
    wanted, every = set(folders), _current(db, source, root, patterns)
    return {name: token for name, token in every.items() if folder_of(name.partition("\0")[0]) in wanted}


def _current(
    db: sqlite3.Connection, source: str, root: str, patterns: bytes, folder: str | None = None
) -> dict[str, str]:
    narrowed, bounds = "", []
    if folder is not None:
        narrowed = " and path > ? and path < ? and instr(substr(path, ?), ?) = 0"
        bounds = [folder, f"{folder}\U0010ffff", len(folder) + 1, os.sep]
    found = dict(db.execute(_CURRENT + narrowed, [source, root, *bounds]))
    found.update(db.execute(_PASSED_OVER + narrowed, [source, root, patterns, *bounds]))
    return found
