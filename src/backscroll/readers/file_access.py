"""Checks of access to files and folders. A folder without permission differs from one that does not exist."""

import os
from pathlib import Path

__all__ = ["check_listable", "is_denied", "is_entry_denied", "is_folder"]


def is_folder(path: Path | str) -> bool:
    """Return whether a folder exists. Costs one stat.

    Raises `PermissionError` if the folder, or one above it, cannot be entered.
    """
    try:
        os.stat(f"{path}{os.sep}.")  # noqa: PTH116 - the dot needs permission to enter the folder itself
    except PermissionError:
        raise
    except OSError:
        return False
    return True


def is_entry_denied(folder: Path | str) -> bool:
    """Return whether a folder, or one above it, exists and cannot be entered. Listing it is another right."""
    try:
        is_folder(folder)
    except PermissionError:
        return True
    return False


def check_listable(folder: Path | str) -> None:
    """Raise `OSError` if a folder cannot be listed or entered."""
    os.scandir(folder).close()
    os.stat(f"{folder}{os.sep}.")  # noqa: PTH116 - as above


def is_denied(folder: Path | str) -> bool:
    """Return whether a folder exists that the user may not list or enter."""
    try:
        check_listable(folder)
    except PermissionError:
        return True
    except OSError:
        return False
    return False
