"""Find the process that has a database open.

Every connection to a database in WAL mode holds a shared lock on one byte of its ``-shm`` file. The operating
system names a process that holds it. Databases without a ``-shm`` file are not in use, or not in WAL mode.
"""

import struct
import sys
from pathlib import Path

__all__ = ["process_holding"]

_CONNECTION_BYTE = 128  # UNIX_SHM_DMS in SQLite
_LAYOUTS = {"linux": "hhqqi4x", "darwin": "qqihh"}  # struct flock


def process_holding(database: Path) -> int | None:
    """Return the id of a process that has a database open; None if no process is known."""
    layout = _LAYOUTS.get(sys.platform)
    if layout is None:
        return None
    import fcntl  # not on Windows

    shm = database.with_name(f"{database.name}-shm")
    try:
        with shm.open("rb") as file:
            if sys.platform == "darwin":
                request = struct.pack(layout, _CONNECTION_BYTE, 1, 0, fcntl.F_WRLCK, 0)
                _, _, pid, kind, _ = struct.unpack(layout, fcntl.fcntl(file, fcntl.F_GETLK, request))
            else:
                request = struct.pack(layout, fcntl.F_WRLCK, 0, _CONNECTION_BYTE, 1, 0)
                kind, _, _, _, pid = struct.unpack(layout, fcntl.fcntl(file, fcntl.F_GETLK, request))
    except OSError:
        return None
    return int(pid) if kind != fcntl.F_UNLCK and pid > 0 else None
