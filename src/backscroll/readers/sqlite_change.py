"""Whether somebody else's SQLite file may have changed, without opening it."""

import os
from pathlib import Path

__all__ = ["change_token"]


def change_token(path: Path) -> str:
    """Changes whenever the database may have: sizes and mtimes of the main file, its log and its journal."""
    path = path.resolve() if path.is_symlink() else path
    return "/".join(_token(f"{path}{suffix}") for suffix in ("", "-wal", "-journal"))


def _token(path: str) -> str:
    try:
        found = os.stat(path)  # noqa: PTH116 - called for every database on every refresh
    except OSError:
        return "-"
    return f"{found.st_size}-{found.st_mtime_ns}"
