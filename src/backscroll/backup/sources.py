"""Files of the roots that a backup contains."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from backscroll.model.backup import BackupRoot, FileKind, SourceFile
from backscroll.readers.file_access import is_entry_denied
from backscroll.sources import Source
from backscroll.sources.protocols import BackupContents

__all__ = ["FileToBackUp", "files_to_back_up"]


class FileToBackUp(Struct, frozen=True):
    """A file, and where it goes in the backup."""

    root: BackupRoot
    path: str  # relative to the root, with forward slashes
    location: Path
    kind: FileKind
    size: int
    modified_ns: int
    session_ids: tuple[str, ...] = ()
    source: BackupContents | None = None


def files_to_back_up(
    roots: Iterable[tuple[Source, Path]], session_ids: Mapping[str, tuple[str, ...]]
) -> Iterator[FileToBackUp]:
    """Return the files of all roots that exist. A file below two roots is returned once.

    ``session_ids`` are the sessions that were read from a file, by path.
    """
    names: dict[str, int] = {}
    seen: set[str] = set()
    for source, path in roots:
        if not isinstance(source, BackupContents) or not (is_entry_denied(path) or path.is_dir()):
            continue
        number = names[source.name] = names.get(source.name, 0) + 1
        name = source.name if number == 1 else f"{source.name}-{number}"
        root = BackupRoot(name, source.name, str(path.absolute()))
        for file in source.backup_files(Path(root.path)):
            relative = Path(file.path).relative_to(root.path).as_posix()
            real = os.path.realpath(file.path)
            if real in seen:
                continue
            seen.add(real)
            size, modified_ns = _status(file.path, is_database=file.is_database)
            yield FileToBackUp(
                root,
                relative,
                Path(file.path),
                "database" if file.is_database else "file",
                size,
                modified_ns,
                _session_ids(file, session_ids),
                source,
            )


def _session_ids(file: SourceFile, session_ids: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the sessions in a file: those read from it, and the one whose folder it is in."""
    own = (file.session_id,) if file.session_id is not None else ()
    return tuple(dict.fromkeys((*own, *session_ids.get(file.path, ()))))


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
