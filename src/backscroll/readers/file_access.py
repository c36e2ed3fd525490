"""Access to files and folders. A folder without permission differs from one that does not exist."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["check_listable", "files_below", "is_denied", "is_entry_denied", "is_folder"]


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


def files_below(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the regular files below a folder, sorted, at any depth; none if the folder does not exist.

    Links to files are followed, links to folders are not. A folder that cannot be listed is yielded itself:
    opening it fails with the reason.
    """
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        yield os.fspath(folder)
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from files_below(entry.path)
            elif stat.S_ISREG(entry.stat().st_mode):
                yield entry.path
        except OSError:  # deleted in the meantime, or a broken link
            continue
