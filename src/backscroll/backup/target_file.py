"""The file of a new backup: check its place, and give it its name when it is complete."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from backscroll.backup.sources import FileToBackUp
from backscroll.errors import BackupError

__all__ = ["check_space", "check_target", "publish"]

_COPIES = 3  # of the largest database: one is compressed while the next is copied and cleaned
_EXPECTED_RATIO = 2  # histories compress to a third; the space check assumes half


def check_target(target: Path, base: Path | None = None, *, force: bool) -> None:
    """Raise `BackupError` if the file exists, unless ``force``, or is in another folder than its base."""
    if base is not None and base.parent.resolve() != target.parent.resolve():
        raise BackupError(
            f"An incremental backup must be in the folder of its base, {base.parent}.",
            target,
            hint="Use --dir or -o.",
        )
    if target.is_dir():
        raise BackupError(f"{target} is a folder.", target, hint="Name a file, or use --dir.")
    if not force and target.exists():
        raise BackupError(f"{target} exists.", target, hint="Name another file, or replace it with --force.")


def check_space(target: Path, files: list[FileToBackUp]) -> None:
    """Raise `BackupError` if the disk has not enough space for the backup and the copies of databases.

    How much of a database is selected is not known yet. Such files do not count.
    """
    whole = [file for file in files if file.selected_ids is None]
    largest_copy = max((file.size for file in whole if file.kind != "file"), default=0)
    needed = sum(file.size for file in whole) // _EXPECTED_RATIO + _COPIES * largest_copy
    folder = next((folder for folder in target.parents if folder.exists()), Path(target.anchor))
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise BackupError(
            f"The backup needs about {needed / 1e6:,.0f} MB in {target.parent}, and {free / 1e6:,.0f} MB are"
            " free.",
            target,
            hint="Free disk space, or choose another folder with --dir.",
        )


def publish(written: Path, target: Path, *, force: bool) -> None:
    """Give the complete file its name. Raises `BackupError` if it exists, unless ``force`` replaces it."""
    if force:
        written.replace(target)
    else:
        try:
            os.link(written, target)  # unlike a rename, this never replaces a file
        except FileExistsError as error:
            raise BackupError(f"{target} exists. Nothing was replaced.", target) from error
        except OSError:  # a file system without links
            check_target(target, force=False)
            written.rename(target)
    with suppress(OSError):  # not supported on all systems
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
