"""Base of an incremental backup: files that have not changed since."""

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from backscroll.backup.reader import BackupReader
from backscroll.backup.sources import FileToBackUp
from backscroll.errors import BackupError
from backscroll.model.safekeeping.backup import BackupBase, BackupFile

__all__ = ["Base"]


class Base:
    """Files in a base backup, to which an incremental backup can refer."""

    def __init__(self, path: Path, *, with_secrets: bool) -> None:
        with BackupReader(path) as reader:
            self._manifest = reader.manifest
        if self._manifest.is_filtered:
            raise BackupError(
                f"{path} contains selected sessions only. The base of a backup must be complete.",
                path,
            )
        self._name = path.name
        # A database with credentials is no substitute for one without them, nor the reverse.
        self._has_same_databases = self._manifest.has_secrets == with_secrets
        roots = {root.name: root.path for root in self._manifest.roots}
        self._files = {(roots[file.root], file.path): file for file in self._manifest.files}

    def unchanged(self, file: FileToBackUp) -> BackupFile | None:
        """Return the file of the base if a file has the same size and time; None if it must be read.

        The size of a database is not compared: its copy is smaller.
        """
        found = self._find(file)
        if found is None or found.modified_ns != file.modified_ns:
            return None
        return self._refer(found, file) if file.kind != "file" or found.size == file.size else None

    def same_content(self, file: FileToBackUp, sha256: str) -> BackupFile | None:
        """Return the file of the base if it has this content."""
        found = self._find(file)
        return self._refer(found, file) if found is not None and found.sha256 == sha256 else None

    def needed(self, files: Iterable[BackupFile]) -> tuple[BackupBase, ...]:
        """Return the backups that contain files to which a new backup refers."""
        ids = {file.backup_id for file in files}
        known = (*self._manifest.bases, BackupBase(self._manifest.id, self._name))
        return tuple(base for base in known if base.id in ids)

    def _find(self, file: FileToBackUp) -> BackupFile | None:
        found = self._files.get((file.root.path, file.path))
        if found is None or found.kind != file.kind:
            return None
        return found if file.kind == "file" or self._has_same_databases else None

    def _refer(self, found: BackupFile, file: FileToBackUp) -> BackupFile:
        return replace(
            found,
            root=file.root.name,
            session_ids=file.session_ids,
            modified_ns=file.modified_ns,
            backup_id=found.backup_id or self._manifest.id,
        )
