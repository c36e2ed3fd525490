"""Files and folders: permissions, listing, names, hashes, and whether an SQLite database has changed.

A folder without permission differs from one that does not exist. No SQLite database is opened here.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_LOG_HEADER_BYTES = 32  # of a write-ahead log


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


def is_broken_link(path: str) -> bool:
    """Return whether a path is a link to something that does not exist."""
    return os.path.islink(path) and not os.path.exists(path)  # noqa: PTH110, PTH114 - a string


def files_below(folder: str | os.PathLike[str], *, with_links: bool = False) -> Iterator[str]:
    """Yield the regular files below a folder, sorted, at any depth; none if the folder does not exist.

    Links to files are followed, links to folders are not; ``with_links`` yields those and broken links
    themselves. A folder that cannot be listed is yielded itself: opening it fails with the reason.
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
                yield from files_below(entry.path, with_links=with_links)
            elif stat.S_ISREG(mode := entry.stat().st_mode) or (with_links and stat.S_ISDIR(mode)):
                yield entry.path
        except OSError:  # deleted in the meantime, or a broken link
            if with_links and entry.is_symlink():
                yield entry.path


def is_utf8(name: str) -> bool:
    """Return whether a name can be encoded as UTF-8."""
    return name.isascii() or name == escape_name(name)


def escape_name(name: str) -> str:
    """Return a name with invalid bytes escaped. It identifies the file but does not open it."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, with bounded memory. Raises `OSError`."""
    from hashlib import file_digest  # start-up: every command imports this module, few compute hashes

    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def change_token(path: Path | str) -> str:
    """Return a fingerprint of an SQLite database without opening it.

    It has the sizes and modification times of the main file, its log and its journal.
    """
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
