"""Files and folders that cannot be read. A folder without permission differs from one that does not exist."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backscroll.model import Fault, Item, Unit

__all__ = ["is_denied", "is_entry_denied", "is_folder", "read_fault", "read_unlisted_folder"]


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


def _check_listable(folder: Path | str) -> None:
    """Raise `OSError` if a folder cannot be listed or entered."""
    os.scandir(folder).close()
    os.stat(f"{folder}{os.sep}.")  # noqa: PTH116 - as above


def is_denied(folder: Path | str) -> bool:
    """Return whether a folder exists that the user may not list or enter."""
    try:
        _check_listable(folder)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def read_unlisted_folder(unit: "Unit") -> "Iterator[Item]":
    """Return a problem if the folder of a unit still cannot be listed. It has no records."""
    from backscroll.model import Origin, Problem, RecordCounts  # start-up time, as below

    try:
        _check_listable(unit.path)
    except OSError as error:
        yield Problem(Origin(unit.path, "folder"), *read_fault(error))
    yield RecordCounts()


def read_fault(error: OSError) -> "Fault":
    """Return the fault of a file or folder that could not be read."""
    from backscroll.model import Fault  # start-up time: a sync without changes needs no problems

    code = "permission-denied" if isinstance(error, PermissionError) else "unreadable-file"
    return Fault(code, f"cannot be read: {error.strerror or error}")
