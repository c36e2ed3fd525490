"""Stage, publish, save and restore single files."""

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from backscroll.errors import ChangeConflictError
from backscroll.readers.file_hash import file_sha256

__all__ = [
    "copy_file",
    "file_hash",
    "missing_folders",
    "publish_new",
    "remove_empty",
    "set_modified_at",
    "sync_folder",
    "write_file",
]

_BLOCK_BYTES = 1 << 20


def file_hash(path: Path) -> str | None:
    """Return the SHA-256 of a file in hex; None if there is none."""
    if path.is_symlink():
        raise ChangeConflictError(f"{path} is a symbolic link. Replace it by the file it points to.", path)
    try:
        return file_sha256(path)
    except FileNotFoundError:
        return None


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
    os.utime(path, (modified_at, modified_at) if modified_at is not None else None)


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
    while not folder.exists():
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
