"""One user-data folder: open databases, and a cache of their session lists."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Raw, Struct

from backscroll.errors import BackscrollError, DatabaseLockedError, DatabaseNotFoundError
from backscroll.model.workspace import normalize_path
from backscroll.readers.files import change_token
from backscroll.readers.sqlite import Database
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_int, as_map, decode
from backscroll.sources.cursor.database.records import Composer
from backscroll.sources.cursor.database.session_rows import RowLoader
from backscroll.sources.cursor.side_databases import SideDatabases
from backscroll.sources.cursor.uri import Address, parse_uri

T = TypeVar("T")

_MAX_WORKSPACE_FILE_BYTES = 1024 * 1024  # a real workspace.json has one line


class WorkspaceFile(Struct, frozen=True):
    """Folder or multi-root file of a workspace, from its ``workspace.json`` or its database."""

    folder: Address
    is_multi_root: bool = False


class DatabaseFile(Struct, frozen=True):
    """Database that can contain sessions, and the storage id of its workspace."""

    path: Path
    storage_id: str = ""  # empty for the global database


class UserData:
    """Databases and session lists below one root. Lists are cached until `refresh` finds a change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.side_databases = SideDatabases(root)
        self.faults: dict[Path, BackscrollError | sqlite3.Error] = {}
        self._tokens: dict[Path, str] = {}
        self._open_databases: dict[Path, Database] = {}
        self._row_loaders: dict[Path, RowLoader] = {}
        self._global_list: session_lists.GlobalList | None = None
        self._database_lists: dict[str, session_lists.DatabaseLists] = {}
        self._row_summaries: dict[Path, dict[str, keys.RowSummary]] = {}
        self._workspace_files: dict[str, WorkspaceFile] | None = None
        self._session_storage_ids: dict[str, list[str]] | None = None
        self._databases: list[DatabaseFile] | None = None
        self._folder_storage_ids: dict[Address, list[str]] | None = None
        self._image_files: dict[str, Path] | None = None
        self._transcript_slugs: dict[str, set[str]] | None = None

    @property
    def global_path(self) -> Path:
        return locations.global_database(self.root)

    def databases(self) -> list[DatabaseFile]:
        """Return the global database, then those of workspaces by storage id."""
        if self._databases is None:
            self._databases = [
                DatabaseFile(path, storage_id) for path, storage_id in locations.databases(self.root)
            ]
        return self._databases

    def refresh(self) -> None:
        """Discard the cache of changed and unreadable databases, and everything cached from other files."""
        for path, token in list(self._tokens.items()):
            if path in self.faults or change_token(path) != token:
                self._invalidate(path)
        self._session_storage_ids = self._workspace_files = self._image_files = self._transcript_slugs = None
        self._databases = self._folder_storage_ids = None
        self.side_databases = SideDatabases(self.root)

    def token(self, path: Path) -> str:
        """Return the change token of a database before its cached content was read."""
        return self._tokens.get(path) or change_token(path)

    def _invalidate(self, path: Path) -> None:
        del self._tokens[path]
        self.faults.pop(path, None)
        self._row_summaries.pop(path, None)
        if path in self._row_loaders:
            self._row_loaders[path].clear()
        if path == self.global_path:
            self._global_list = None
        self._database_lists.pop(path.parent.name if path != self.global_path else "", None)
        self._session_storage_ids = None

    def close(self) -> None:
        """Close all databases. Unreadable ones are tried again at the next use."""
        for path in list(self.faults):
            self._invalidate(path)
        for row_loader in self._row_loaders.values():
            row_loader.clear()
        for database in self._open_databases.values():
            database.close()
        self._open_databases.clear()
        self._row_loaders.clear()

    def database(self, path: Path) -> Database:
        """Return an open database. Besides the global one, at most one database stays open until `close`."""
        if path not in self._open_databases:
            for other in [each for each in self._open_databases if each != self.global_path]:
                self._open_databases.pop(other).close()
                if other in self._row_loaders:
                    self._row_loaders.pop(other).clear()
            self._open_databases[path] = Database(path)
        return self._open_databases[path]

    def row_loader(self, path: Path) -> RowLoader:
        database = self.database(path)
        if path not in self._row_loaders:
            self._row_loaders[path] = RowLoader(database)
        return self._row_loaders[path]

    def row_summaries(self, path: Path) -> dict[str, keys.RowSummary]:
        """Return every session that has rows in a database, from its keys alone."""
        if path not in self._row_summaries:
            found = self._catch_fault(path, lambda: self.row_loader(path).query_keys(_find_sessions))
            self._row_summaries[path] = found or {}
        return self._row_summaries[path]

    def global_list(self) -> session_lists.GlobalList:
        """Return the list of the global database. An unreadable list is not replaced by an older one."""
        if self._global_list is None:
            path = self.global_path
            found = self._query(path, session_lists.read_global_list) if locations.is_file(path) else None
            fault = self.faults.get(path)
            self._global_list = found or (
                session_lists.GlobalList("table", fault=str(fault)) if fault else session_lists.GlobalList()
            )
        return self._global_list

    def database_lists(self, file: DatabaseFile) -> session_lists.DatabaseLists:
        """Return the session lists of a database."""
        if file.storage_id not in self._database_lists:
            self._database_lists[file.storage_id] = (
                self._query(file.path, session_lists.read_lists) or session_lists.DatabaseLists()
            )
        return self._database_lists[file.storage_id]

    def list_entry(self, session_id: str) -> session_lists.ListEntry | None:
        """Return the entry of a session in the global list, else in the list of a workspace."""
        found = self.global_list().entries.get(session_id)
        if found is not None or self.global_list().fault:
            return found
        for storage_id in self.session_storage_ids(session_id):
            if entry := self._database_lists[storage_id].entries.get(session_id):
                return entry
        return None

    def session_storage_ids(self, session_id: str) -> list[str]:
        """Return the storage ids of the workspaces that list a session, then of those that show it."""
        if self._session_storage_ids is None:
            listed_in: dict[str, list[str]] = {}
            shown_in: dict[str, list[str]] = {}
            for file in self.databases():
                if not file.storage_id:
                    continue
                lists = self.database_lists(file)
                for listed_id in lists.entries:
                    listed_in.setdefault(listed_id, []).append(file.storage_id)
                for shown_id in lists.open_ids - lists.entries.keys():
                    shown_in.setdefault(shown_id, []).append(file.storage_id)
            for shown_id, storage_ids in shown_in.items():
                listed_in.setdefault(shown_id, []).extend(storage_ids)
            self._session_storage_ids = listed_in
        return self._session_storage_ids.get(session_id, [])

    def inline_composer(self, session_id: str) -> tuple[Path, Composer] | None:
        """Return a session's newest record with its conversation in the list of a workspace, and its path."""
        found: list[tuple[Path, Composer]] = []
        for file in self.databases():
            if file.storage_id and session_id in self.database_lists(file).inline_tokens:
                composer = self._query(
                    file.path, lambda connection: session_lists.inline_composer(connection, session_id)
                )
                found += [(file.path, composer)] if composer is not None else []
        return max(found, key=lambda each: as_int(each[1].last_updated_at) or 0, default=None)

    def workspace_files(self) -> dict[str, WorkspaceFile]:
        """Return the content of every ``workspace.json`` by storage id.

        If the file is missing or names no folder, the database of the workspace may have the folder.
        """
        if self._workspace_files is None:
            found = {
                storage.id: _read_workspace_file(storage)
                for storage in locations.workspace_storages(self.root)
            }
            for file in self.databases():
                if file.storage_id and found.get(file.storage_id) is None:
                    value = self.database_lists(file).workspace_value
                    found[file.storage_id] = _parse_workspace_value(value) if value is not None else None
            self._workspace_files = {
                storage_id: file for storage_id, file in found.items() if file is not None
            }
        return self._workspace_files

    def folder_storage_ids(self, folder: Address) -> list[str]:
        """Return all storage ids of a folder. Cursor assigns a new one if a folder is moved or recreated."""
        if self._folder_storage_ids is None:
            self._folder_storage_ids = {}
            for storage_id, file in self.workspace_files().items():
                normalized = file.folder._replace(path=normalize_path(file.folder.path))
                self._folder_storage_ids.setdefault(normalized, []).append(storage_id)
        return self._folder_storage_ids.get(folder._replace(path=normalize_path(folder.path)), [])

    def image_files(self) -> dict[str, Path]:
        """Return the pasted images that still exist, by the UUID at the end of their names."""
        if self._image_files is None:
            self._image_files = {}
            for storage in locations.workspace_storages(self.root):
                for path in locations.pasted_images(storage):
                    self._image_files[path.stem[-36:].lower()] = path
        return self._image_files

    def transcript_slugs(self, session_id: str) -> set[str]:
        """Return the names of the project folders that contain a transcript of a session."""
        if self._transcript_slugs is None:
            self._transcript_slugs = {}
            home = locations.agent_home(self.root)
            for path in sorted(home.glob("projects/*/agent-transcripts/*")) if home else []:
                self._transcript_slugs.setdefault(path.stem, set()).add(path.parts[-3])
        return self._transcript_slugs.get(session_id, set())

    def _query(self, path: Path, query: Callable[[sqlite3.Connection], T]) -> T | None:
        return self._catch_fault(path, lambda: self.database(path).read(query))

    def _catch_fault(self, path: Path, query: Callable[[], T]) -> T | None:
        """Run a query. On an error, record a fault and return None. A locked database is not tried again."""
        if isinstance(self.faults.get(path), DatabaseLockedError):
            return None
        self._tokens.setdefault(path, change_token(path))
        try:
            return query()
        except DatabaseNotFoundError:
            return None
        except (BackscrollError, sqlite3.Error) as error:
            self.faults[path] = error
            return None


def _find_sessions(connection: sqlite3.Connection) -> dict[str, keys.RowSummary]:
    return keys.find_sessions(connection) if keys.has_table(connection, "cursorDiskKV") else {}


def _read_workspace_file(storage: locations.WorkspaceStorage) -> WorkspaceFile | None:
    path = storage.folder / "workspace.json"
    try:
        if path.is_symlink() or path.stat().st_size > _MAX_WORKSPACE_FILE_BYTES:
            return None
        fields = as_map(decode(Raw(path.read_bytes()), object))
    except (OSError, UndecodableError):
        return None
    if found := parse_uri(fields.get("folder")):
        return WorkspaceFile(found)
    if found := parse_uri(fields.get("workspace") or fields.get("configuration")):
        return WorkspaceFile(found, is_multi_root=True)
    return None


def _parse_workspace_value(value: bytes) -> WorkspaceFile | None:
    """Parse a folder in ``ItemTable``: a path or URI, as plain text or JSON, or an object with one."""
    if len(value) > _MAX_WORKSPACE_FILE_BYTES:
        return None
    text = value.decode("utf-8", "replace").strip()
    try:
        document = decode(Raw(value), object)
    except UndecodableError:
        document = text
    fields = as_map(document)
    candidates = [fields.get(name) for name in ("folder", "workspace", "configuration", "uri")]
    # The path of a URI object is without its host.
    candidates.append(document if "scheme" in fields or not fields else fields.get("path"))
    for candidate in candidates:
        if found := parse_uri(candidate):
            return WorkspaceFile(found, is_multi_root=found.path.endswith(".code-workspace"))
    return None
