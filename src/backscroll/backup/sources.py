"""Files of the roots that a backup contains."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from backscroll.backup.container import (
    ARCHIVE_ROOT,
    CHANGES_FOLDER,
    CONFIG_FILE,
    JOURNAL_FOLDER,
    PRICES_FILE,
    is_change,
    is_own_file,
)
from backscroll.model.backup import BackupRoot, FileKind, SourceFile
from backscroll.readers.files import files_below, is_entry_denied
from backscroll.sources import Source

_LINK_FAULTS = {
    "folder": "it is a link to a folder, which is not followed",
    "broken": "it is a link to something that does not exist",
}


class FileToBackUp(Struct, frozen=True):
    """A file, and where it goes in the backup."""

    root: BackupRoot
    path: str  # relative to the root, with forward slashes
    location: Path
    kind: FileKind
    size: int
    modified_ns: int
    session_ids: tuple[str, ...] = ()
    is_shared: bool = False  # belongs to several sessions
    source: Source | None = None  # None for the folder of the archive
    missing: str | None = None  # why it cannot be in the backup


def files_to_back_up(
    roots: Iterable[tuple[Source, Path]],
    session_ids: Mapping[str, tuple[str, ...]],
) -> Iterator[FileToBackUp]:
    """Return the files of all roots that exist. A file that two paths lead to is returned once.

    ``session_ids`` are the sessions that were read from a file, by path. What cannot be in the backup is
    returned with the reason. A link to a folder is left out if the files in it are returned by other paths.
    """
    names: dict[str, int] = {}
    seen: set[str] = set()
    links: list[FileToBackUp] = []
    for source, path in roots:
        backup = source.backup()
        if backup is None or not (is_entry_denied(path) or path.is_dir()):
            continue
        number = names[source.name] = names.get(source.name, 0) + 1
        name = source.name if number == 1 else f"{source.name}-{number}"
        root = BackupRoot(name, source.name, str(path.absolute()))
        files = list(backup.backup_files(Path(root.path)))
        subagents = _subagents(files, session_ids)
        for file in files:
            relative = Path(file.path).relative_to(root.path).as_posix()
            link = _special_link(file.path)
            missing = file.missing or _LINK_FAULTS.get(link)
            if missing is None:
                real = os.path.realpath(file.path)
                if real in seen:
                    continue
                seen.add(real)
            size, modified_ns = _status(file.path, is_database=file.is_database)
            found = session_ids.get(file.path) or _owners(file, subagents)
            listed = FileToBackUp(
                root,
                relative,
                Path(file.path),
                "database" if file.is_database else "file",
                size,
                modified_ns,
                found,
                file.is_shared,
                source,
                missing,
            )
            if link == "folder" and file.missing is None:
                links.append(listed)
            else:
                yield listed
    for listed in links:
        if any(os.path.realpath(path) not in seen for path in files_below(listed.location)):
            yield listed


def _special_link(path: str) -> str:
    """Return "folder" or "broken" for a link that leads to no file; "" for a file and a link to one."""
    if not os.path.islink(path) or os.path.isfile(path):  # noqa: PTH113, PTH114 - called for every file
        return ""
    return "folder" if os.path.isdir(path) else "broken"  # noqa: PTH112 - as above


def own_files(archive_folder: Path, prices: Path | None) -> Iterator[FileToBackUp]:
    """Return what exists only in the folder of the archive: journals, settings, change log, and the prices.

    A saved copy of a database in the change log is left out: it may contain logins.
    """
    root = BackupRoot(ARCHIVE_ROOT, "", str(archive_folder.absolute()))
    config = archive_folder / CONFIG_FILE
    found = {CONFIG_FILE: config} if config.exists() else {}
    if prices is not None:
        found[PRICES_FILE] = prices
    for folder in (JOURNAL_FOLDER, CHANGES_FOLDER):
        for path in map(Path, files_below(archive_folder / folder)):
            found[path.relative_to(archive_folder).as_posix()] = path
    for name, path in found.items():
        size, modified_ns = _status(str(path), is_database=False)
        listed = FileToBackUp(root, name, path, "file", size, modified_ns)
        if name in (JOURNAL_FOLDER, CHANGES_FOLDER) or path.is_dir():
            yield replace(listed, missing="it cannot be listed")
        elif is_own_file(name, "file") and not (is_change(name) and _is_database(path)):
            yield listed


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False  # it is listed as missing when it is read


def _subagents(
    files: Iterable[SourceFile], session_ids: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the sessions of subagents whose files are in a folder of their own, by the subagent's id."""
    return {
        file.session_id: session_ids[file.path]
        for file in files
        if file.session_id is not None
        and session_ids.get(file.path)
        and file.session_id not in session_ids[file.path]
    }


def _owners(file: SourceFile, subagents: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the session whose folder a file is in; for the folder of a subagent, its session."""
    if file.session_id is None:
        return ()
    return subagents.get(file.session_id, (file.session_id,))


def _status(path: str, *, is_database: bool) -> tuple[int, int]:
    """Return size and modification time; zeros if the file is gone. The log of a database counts too."""
    size = modified_ns = 0
    for suffix in ("", "-wal") if is_database else ("",):
        try:
            status = os.stat(f"{path}{suffix}")  # noqa: PTH116 - called for every file
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            size, modified_ns = size + status.st_size, max(modified_ns, status.st_mtime_ns)
    return size, modified_ns
