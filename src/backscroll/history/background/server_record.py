"""The files that tell other processes about the web server of an archive. Loads little: `sync` uses it."""

from pathlib import Path

from backscroll.readers.file_lock import try_lock

__all__ = ["LOCK_NAME", "RECORD_NAME", "is_served"]

LOCK_NAME = "web.lock"  # next to the archive; locked by its server
RECORD_NAME = "web.json"  # next to the archive while the web app serves it


def is_served(archive_path: Path) -> bool:
    """Return whether a web server runs for an archive. The record of a killed server is removed.

    Only the lock shows that a server runs: the process id of a killed server may be in use again.
    """
    record_path = archive_path.with_name(RECORD_NAME)
    if not record_path.exists():
        return False
    try:
        lock = try_lock(archive_path.with_name(LOCK_NAME))
        if lock is None:
            return True
        try:
            record_path.unlink(missing_ok=True)
        finally:
            lock.close()
    except OSError:
        pass  # without write permission, there was no server with a record
    return False
