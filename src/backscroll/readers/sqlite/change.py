"""Detect changes of an SQLite file without opening it."""

import os
from pathlib import Path

__all__ = ["change_token", "lacks_database"]

_LOG_HEADER_BYTES = 32


def change_token(path: Path | str) -> str:
    """Return a fingerprint: sizes and modification times of the main file, its log and its journal."""
    if os.path.islink(path):  # noqa: PTH114 - called for every database on every refresh
        path = os.path.realpath(path)
    return f"{_token(f'{path}')}/{_token(f'{path}-wal')}/{_token(f'{path}-journal')}"


def lacks_database(path: str) -> bool:
    """Return whether a database does not exist although its write-ahead log has content."""
    if os.path.lexists(path):
        return False
    try:
        return os.stat(f"{path}-wal").st_size > _LOG_HEADER_BYTES  # noqa: PTH116 - as above
    except OSError:
        return False


def _token(path: str) -> str:
    try:
        found = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return "-"
    return f"{found.st_size}-{found.st_mtime_ns}"
