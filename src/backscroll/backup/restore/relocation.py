"""Restore onto another machine: new paths of files, and new paths in their contents."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from backscroll.archive import Archive
from backscroll.backup.reader import BackupReader, FileDamagedError
from backscroll.backup.restore.options import RestoreOptions, target_root
from backscroll.backup.restore.session_copies import extract
from backscroll.errors import ArchiveError, RestoreError
from backscroll.model.safekeeping.backup import BackupFile, BackupFolder, BackupRoot
from backscroll.model.safekeeping.changes import Content
from backscroll.readers.file_hash import file_sha256
from backscroll.sources import named
from backscroll.sources.capabilities import PathMapping, Relocation
from backscroll.sources.capability_lookup import capability
from backscroll.sources.row_inserts import file_blocks

__all__ = ["Relocations"]


class _ArchivedPaths(NamedTuple):
    """Paths in the archive of a backup."""

    workspaces: tuple[str, ...] = ()
    files: tuple[tuple[str, str, str], ...] = ()  # source, root and path; also of files that no longer exist

    def paths(self, root: BackupRoot) -> list[str]:
        """Return the paths of files below a root, relative to it."""
        return [
            path[len(root.path) :].replace("\\", "/").strip("/")
            for source, folder, path in self.files
            if (source, folder) == (root.source, root.path)
        ]


class Relocations:
    """New paths and contents of the files in a backup. Without maps, everything stays as it is."""

    def __init__(self, reader: BackupReader, options: RestoreOptions, folder: Path) -> None:
        self._reader = reader
        self._options = options
        self._folder = folder  # for private copies
        self._by_root: dict[str, Relocation | None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        found = [one.warnings for one in self._by_root.values() if one is not None]
        return tuple(dict.fromkeys(warning for warnings in found for warning in warnings))

    def path(self, root: BackupRoot, file: BackupFile) -> str:
        """Return the new path of a file below its root."""
        relocation = self._of(root)
        return relocation.path(file.path) if relocation is not None else file.path

    def content(self, root: BackupRoot, file: BackupFile) -> tuple[Content, str]:
        """Return the content of a valid file and its SHA-256, with new paths."""
        if file.kind == "archive" and self._options.maps:
            return self._archive_content(file)
        relocation = self._of(root)
        if relocation is None:
            return partial(self._reader.blocks, file), file.sha256
        if file.kind == "database":
            number = self._reader.manifest.files.index(file)
            copy = extract(self._reader, file, self._folder / f"mapped-{number}.db")
            _edit(relocation, file.path, copy)
            return partial(file_blocks, copy), file_sha256(copy)
        if relocation.content(file.path, ()) is None:
            return partial(self._reader.blocks, file), file.sha256
        content = partial(relocation.new_content, file.path, partial(self._reader.blocks, file))
        digest = sha256()
        for block in content():
            digest.update(block)
        return content, digest.hexdigest()

    def _archive_content(self, file: BackupFile) -> tuple[Content, str]:
        copy = extract(self._reader, file, self._folder / "mapped-archive.db")
        try:
            with closing(Archive(copy)) as archive:
                archive.maintenance.relocate(self._new_root, self._options.path_maps)
        except ArchiveError:  # of a newer version; it is restored as it is
            return partial(self._reader.blocks, file), file.sha256
        return partial(file_blocks, copy), file_sha256(copy)

    def _new_root(self, source: str, root: str) -> tuple[str, Callable[[str], str]] | None:
        """Return where the units of a root are on this machine. The backup may contain no files of it."""
        in_backup = (one for one in self._reader.manifest.roots if (one.source, one.path) == (source, root))
        found = next(in_backup, BackupRoot(f"{source} {root}", source, root))
        try:
            target = target_root(found, self._options)
        except RestoreError:
            return None
        relocation = self._of(found)
        return (str(target), relocation.path) if relocation is not None else None

    def relocate_folder(self, root: BackupRoot, folder: Path, target: Path) -> Path:
        """Move the private copies of a root's files to their new paths in another folder, and edit them."""
        relocation = self._of(root)
        if relocation is None:
            return folder
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = path.relative_to(folder).as_posix()
            moved = target.joinpath(*PurePosixPath(relocation.path(name)).parts)
            moved.parent.mkdir(parents=True, exist_ok=True)
            with path.open("rb") as file:
                is_database = file.read(16) == b"SQLite format 3\0"
            if is_database:
                _edit(relocation, name, path)
                path.replace(moved)
                continue
            blocks = relocation.new_content(name, partial(file_blocks, path))
            moved.write_bytes(b"".join(blocks))
        return target

    def _of(self, root: BackupRoot) -> Relocation | None:
        if not self._options.maps or not root.source:
            return None
        if root.name not in self._by_root:
            mapping = capability(named(root.source), PathMapping)
            files = [file for file in self._reader.manifest.files if file.root == root.name]
            by_path = {file.path: file for file in files}
            paths = dict.fromkeys([*by_path, *self._archived.paths(root)])
            folder = BackupFolder(tuple(paths), partial(self._read, by_path), self._archived.workspaces)
            self._by_root[root.name] = (
                mapping.relocate(folder, self._options.path_maps, root.path, target_root(root, self._options))
                if mapping is not None
                else None
            )
        return self._by_root[root.name]

    def _read(self, files: dict[str, BackupFile], path: str) -> Iterator[bytes]:
        """Yield the content of a file; a damaged one up to the damage. A file in the archive has none."""
        if path not in files:
            return
        try:
            yield from self._reader.blocks(files[path])
        except FileDamagedError:
            return

    @cached_property
    def _archived(self) -> _ArchivedPaths:
        """The paths in the archive of the backup; none if it is missing or damaged."""
        file = next((file for file in self._reader.manifest.files if file.kind == "archive"), None)
        if file is None:
            return _ArchivedPaths()
        try:
            copy = extract(self._reader, file, self._folder / "archive" / "archive.db")
            with closing(Archive(copy)) as archive:
                workspaces = archive.sessions.workspaces()
                files = archive.originals.units_with_file()
        except (FileDamagedError, ArchiveError):
            return _ArchivedPaths()
        return _ArchivedPaths(
            tuple(workspace.path for workspace in workspaces if workspace.host is None),
            tuple((one.source, one.root, one.path) for one in files),
        )


def _edit(relocation: Relocation, path: str, copy: Path) -> None:
    """Change the paths in a private copy of a database. It keeps its journal mode."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.text_factory = bytes
        (mode,) = connection.execute("pragma journal_mode").fetchone()
        connection.execute("pragma journal_mode = delete")
        connection.execute("begin")
        relocation.edit_database(path, connection)
        connection.execute("commit")
        if mode == b"wal":
            connection.execute("pragma journal_mode = wal")
