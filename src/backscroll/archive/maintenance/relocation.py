"""Change the paths of units in a private copy of an archive, for another machine."""

import sqlite3
from collections.abc import Callable

__all__ = ["NewUnitPath", "relocate_units"]

NewUnitPath = Callable[[str, str], tuple[str, str] | None]  # root and path; None if they stay as they are


def relocate_units(db: sqlite3.Connection, new_path: NewUnitPath) -> int:
    """Change root and path of units. Return their number.

    The units are read again by the next sync: the folders in their files have changed, too.
    """
    db.execute("begin")
    count = 0
    for unit_id, root, path in db.execute("select id, root, path from unit").fetchall():
        if (new := new_path(root, path)) is not None:
            db.execute("update unit set root = ?, path = ? where id = ?", [*new, unit_id])
            db.execute("update unit set fingerprint = '' where id = ? and not is_gone", [unit_id])
            count += 1
    db.execute(
        "delete from folder_fingerprint where (source, root, path) not in"
        " (select source, root, folder from unit where key = '')"
    )
    db.execute("commit")
    return count
