"""Copies of files with several sessions, reduced to the selected ones."""

from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path, PurePosixPath
from sqlite3 import Connection

from backscroll.backup.reader import BackupReader
from backscroll.backup.snapshot import take_snapshot
from backscroll.model.safekeeping.backup import BackupFile
from backscroll.sources.capabilities import SessionSelection

__all__ = ["extract", "extract_all", "reduce_folder"]


def extract(reader: BackupReader, file: BackupFile, target: Path) -> Path:
    """Write a file of a backup to a private file. Raises `FileDamagedError`."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    target.touch(mode=0o600)
    with target.open("wb") as written:
        for block in reader.blocks(file):
            written.write(block)
    return target


def extract_all(reader: BackupReader, files: Iterable[BackupFile], folder: Path) -> Path:
    """Write files of one root below a folder, as they were below the root."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        extract(reader, file, folder.joinpath(*PurePosixPath(file.path).parts))
    return folder


def reduce_folder(
    selection: SessionSelection, folder: Path, session_ids: Collection[str], target: Path
) -> Path:
    """Copy the selected sessions of all files below a folder to another one."""
    target.mkdir(parents=True)
    selected = selection.select_files(folder, session_ids, ())
    for file in selected.files:
        path = Path(file.path)
        relative = path.relative_to(folder)
        copy = target / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.is_database:
            copy_rows = partial(_copy_sessions, selection, relative.as_posix(), selected.session_ids)
            if (reduced := take_snapshot(path, target, None, copy_rows)) is not None:
                reduced.replace(copy)
            continue
        with path.open("rb") as opened:
            records = selection.select_records(relative.as_posix(), opened, selected.session_ids)
        if records:
            copy.write_bytes(records)
    (target / "copy.db").unlink(missing_ok=True)  # of a database without any of the sessions
    return target


def _copy_sessions(
    selection: SessionSelection, path: str, ids: frozenset[str], original: Connection, copy: Connection
) -> bool:
    return selection.copy_sessions(path, original, copy, ids)
