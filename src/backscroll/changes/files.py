"""Stage, publish, save and restore single files; replace single lines.

A tool may append to a file while lines of it are replaced.
"""

import errno
import os
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from backscroll.errors import ChangeConflictError
from backscroll.model.change import LineChange
from backscroll.readers.files import file_sha256

_BLOCK_BYTES = 1 << 20
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
_MAX_TRIES = 20  # to replace lines of a file that grows meanwhile


def file_hash(path: Path) -> str | None:
    """Return the SHA-256 of a file in hex; None if there is none, or can be none with such a path."""
    try:
        if path.is_symlink():
            raise ChangeConflictError(
                f"{path} is a symbolic link. Replace it by the file it points to.", path
            )
        return file_sha256(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise


def remove_file(path: Path) -> None:
    """Delete a file if there is one. A path that no file can have is ignored."""
    try:
        path.unlink()
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise


def write_file(path: Path, blocks: Iterable[bytes], mode: int = 0o600) -> str:
    """Write a new file durably. Return its SHA-256. Raises `FileExistsError`."""
    digest = sha256()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with os.fdopen(descriptor, "wb") as file:
        for block in blocks:
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(descriptor)
    path.chmod(mode)
    return digest.hexdigest()


def copy_file(path: Path, target: Path, mode: int = 0o600) -> str:
    """Copy a file durably to a new path. Return the SHA-256 of what was copied."""
    with path.open("rb") as file:
        return write_file(target, iter(lambda: file.read(_BLOCK_BYTES), b""), mode)


def set_modified_at(path: Path, modified_at: float | None) -> None:
    """Set the modification time of a file in seconds since 1970, by default to the current time."""
    if modified_at is None:
        os.utime(path)
        return
    nanoseconds = round(modified_at * 1e6) * 1000  # a fraction of a second is not exact in binary
    os.utime(path, ns=(nanoseconds, nanoseconds))


def publish_new(staged: Path, target: Path) -> None:
    """Move a staged file to its target. Raises `FileExistsError` if a file is there."""
    try:
        os.link(staged, target)  # unlike a rename, this never replaces a file
    except FileExistsError:
        raise
    except OSError:  # file systems without hard links
        if os.path.lexists(target):
            raise FileExistsError(f"{target} exists") from None
        staged.rename(target)
    else:
        staged.unlink()
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make renames and deletions in a folder durable."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def missing_folders(folder: Path) -> list[Path]:
    """Return the folder and its parents that do not exist, the outermost first."""
    missing: list[Path] = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = folder.parent
    return missing[::-1]


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove the folders that are empty, the innermost first."""
    for folder in sorted(set(folders), key=lambda one: len(one.parts), reverse=True):
        try:
            folder.rmdir()
        except OSError:
            continue  # it has other files, or is gone


# Lines


def inverse_line(change: LineChange) -> LineChange:
    """Return the change that restores the line."""
    return LineChange(path=change.path, before=change.after, after=change.before, label=change.label)


def missing_lines(path: Path, changes: Iterable[LineChange]) -> list[LineChange]:
    """Return the changes whose line is not in the file."""
    lines = set(path.read_bytes().split(b"\n")) if path.exists() else set()
    return [change for change in changes if change.before is not None and change.before not in lines]


def apply_lines(path: Path, changes: Sequence[LineChange], staged: Path) -> None:
    """Rewrite a file with changed lines. Lines that are not in the file are ignored.

    The file is replaced by a rename. What a tool appended to the old file meanwhile is appended to the new
    one, so that no line is lost.
    """
    staged.unlink(missing_ok=True)  # of an interrupted change
    if not changes:
        return
    replaced = {change.before: change.after for change in changes if change.before is not None}
    appended = [change.after for change in changes if change.before is None and change.after is not None]
    path.touch(mode=0o600, exist_ok=True)
    for _ in range(_MAX_TRIES):
        with path.open("rb") as old:
            content = old.read()
            mode = os.fstat(old.fileno()).st_mode & 0o777
            staged.unlink(missing_ok=True)
            write_file(staged, [_rewritten(content, replaced, appended)], mode)
            if os.fstat(old.fileno()).st_size != len(content):
                continue
            staged.replace(path)
            _append_rest(old, path)
        sync_folder(path.parent)
        return
    staged.unlink(missing_ok=True)
    raise ChangeConflictError(f"{path} is being written all the time. Close the tool and try again.", path)


def _rewritten(content: bytes, replaced: dict[bytes, bytes | None], appended: list[bytes]) -> bytes:
    lines = content.split(b"\n")
    rest = lines.pop()  # an incomplete line, or empty
    kept = [replaced.get(line, line) for line in lines]
    if rest and appended:
        kept.append(rest)
        rest = b""
    return b"".join(line + b"\n" for line in (*kept, *appended) if line is not None) + rest


def _append_rest(old: BinaryIO, path: Path) -> None:
    """Append what was written to the old file after it was read."""
    if rest := old.read():
        with path.open("ab") as new:
            new.write(rest)
