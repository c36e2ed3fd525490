"""Inter-process locks on files. The operating system releases them when the process exits."""

import sqlite3
from pathlib import Path


def try_lock(path: Path) -> sqlite3.Connection | None:
    """Lock a file, which is created if it is missing. Return None if another process holds the lock.

    Closing the connection releases the lock.
    """
    path.touch(mode=0o600, exist_ok=True)
    db = None
    try:
        db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        if try_lock_connection(db):
            return db
    except sqlite3.OperationalError as error:
        if db is not None:
            db.close()
        raise OSError(f"{path} cannot be locked: {error}") from error
    db.close()
    return None


def try_lock_connection(db: sqlite3.Connection) -> bool:
    """Lock the database of a connection with an exclusive transaction. Return False if it is locked."""
    try:
        db.execute("pragma journal_mode = memory")  # writes nothing, so it works on a full disk
        db.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
