"""All that is known of one user-data folder, kept between two readings of it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Raw, Struct

from backscroll.errors import BackscrollError, DatabaseLockedError, DatabaseNotFoundError
from backscroll.model import normalize_path
from backscroll.readers.sqlite import Database, change_token
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_int, as_map, decode
from backscroll.sources.cursor.database.record_types import Composer
from backscroll.sources.cursor.database.session_rows import RowLoader
from backscroll.sources.cursor.side_databases import SideDatabases
from backscroll.sources.cursor.uri import Address, parse_uri

__all__ = ["DatabaseFile", "UserData", "WorkspaceFile"]

T = TypeVar("T")

_LARGEST_NOTE = 1024 * 1024  # a workspace.json is a line; anything larger is none


class WorkspaceFile(Struct, frozen=True):
    """What a ``workspace.json`` says."""

    folder: Address
    is_multi_root: bool = False


class DatabaseFile(Struct, frozen=True):
    """A database that may hold sessions, and the workspace it is of."""

    path: Path
    storage: str = ""  # empty for the global one


class UserData:
    """The databases and lists below one root. Lists are read once; `refresh` notices that they changed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.side_databases = SideDatabases(root)
        self.faults: dict[Path, BackscrollError | sqlite3.Error] = {}
        self._tokens: dict[Path, str] = {}
        self._open: dict[Path, Database] = {}
        self._row_loaders: dict[Path, RowLoader] = {}
        self._global_list: session_lists.GlobalList | None = None
        self._lists: dict[str, session_lists.DatabaseLists] = {}
        self._sessions: dict[Path, dict[str, keys.Rows]] = {}
        self._folders: dict[str, WorkspaceFile] | None = None
        self._members: dict[str, list[str]] | None = None
        self._files: list[DatabaseFile] | None = None
        self._storage_ids: dict[Address, list[str]] | None = None
        self._images: dict[str, Path] | None = None
        self._slugs: dict[str, set[str]] | None = None

    @property
    def global_path(self) -> Path:
        return locations.global_database(self.root)

    def databases(self) -> list[DatabaseFile]:
        """The global database first, then the workspaces' own in the order of their ids."""
        if self._files is None:
            self._files = [DatabaseFile(path, storage) for path, storage in locations.databases(self.root)]
        return self._files

    def refresh(self) -> None:
        """Forget what was read from databases that have changed or could not be read, and what is beside."""
        for path, token in list(self._tokens.items()):
            if path in self.faults or change_token(path) != token:
                self._forget(path)
        self._members = self._folders = self._images = self._slugs = None
        self._files = self._storage_ids = None
        self.side_databases = SideDatabases(self.root)

    def token(self, path: Path) -> str:
        """How a database stood before anything that is known of it was read."""
        return self._tokens.get(path) or change_token(path)

    def _forget(self, path: Path) -> None:
        del self._tokens[path]
        self.faults.pop(path, None)
        self._sessions.pop(path, None)
        if path in self._row_loaders:
            self._row_loaders[path].drop()
        if path == self.global_path:
            self._global_list = None
        self._lists.pop(path.parent.name if path != self.global_path else "", None)
        self._members = None

    def close(self) -> None:
        """Close all databases. Those that could not be read are asked again by whoever goes on."""
        for path in list(self.faults):
            self._forget(path)
        for row_loader in self._row_loaders.values():
            row_loader.drop()
        for database in self._open.values():
            database.close()
        self._open.clear()
        self._row_loaders.clear()

    def database(self, path: Path) -> Database:
        """The database at a path, kept open until `close`; of those of workspaces only one at a time."""
        if path not in self._open:
            for other in [each for each in self._open if each != self.global_path]:
                self._open.pop(other).close()
                if other in self._row_loaders:
                    self._row_loaders.pop(other).drop()
            self._open[path] = Database(path)
        return self._open[path]

    def row_loader(self, path: Path) -> RowLoader:
        database = self.database(path)
        if path not in self._row_loaders:
            self._row_loaders[path] = RowLoader(database)
        return self._row_loaders[path]

    def sessions(self, path: Path) -> dict[str, keys.Rows]:
        """Every session that has rows in a database, from its keys alone."""
        if path not in self._sessions:
            found = self._try(path, lambda: self.row_loader(path).walk(_sessions))
            self._sessions[path] = found or {}
        return self._sessions[path]

    def global_list(self) -> session_lists.GlobalList:
        """The list of the global database that is to be believed; one that cannot be read has no stand-in."""
        if self._global_list is None:
            path = self.global_path
            found = self._ask(path, session_lists.global_list) if locations.is_file(path) else None
            fault = self.faults.get(path)
            self._global_list = found or (
                session_lists.GlobalList("table", fault=str(fault)) if fault else session_lists.GlobalList()
            )
        return self._global_list

    def lists(self, file: DatabaseFile) -> session_lists.DatabaseLists:
        """What a database's own keys list."""
        if file.storage not in self._lists:
            self._lists[file.storage] = (
                self._ask(file.path, session_lists.lists) or session_lists.DatabaseLists()
            )
        return self._lists[file.storage]

    def entry(self, session: str) -> session_lists.ListEntry | None:
        """What the believed list says of a session; a workspace's own list where no other has it."""
        found = self.global_list().entries.get(session)
        if found is not None or self.global_list().fault:
            return found
        for storage in self.members(session):
            if entry := self._lists[storage].entries.get(session):
                return entry
        return None

    def members(self, session: str) -> list[str]:
        """The workspaces whose own database lists or shows a session, listing before showing."""
        if self._members is None:
            listed: dict[str, list[str]] = {}
            shown: dict[str, list[str]] = {}
            for file in self.databases():
                if not file.storage:
                    continue
                found = self.lists(file)
                for name in found.entries:
                    listed.setdefault(name, []).append(file.storage)
                for name in found.shown - found.entries.keys():
                    shown.setdefault(name, []).append(file.storage)
            for name, storages in shown.items():
                listed.setdefault(name, []).extend(storages)
            self._members = listed
        return self._members.get(session, [])

    def inline(self, session: str) -> tuple[Path, Composer] | None:
        """A session's record out of the workspaces' own lists, where one has its conversation; the newest."""
        found: list[tuple[Path, Composer]] = []
        for file in self.databases():
            if file.storage and session in self.lists(file).inline:
                record = self._ask(file.path, lambda connection: session_lists.inline(connection, session))
                found += [(file.path, record)] if record is not None else []
        return max(found, key=lambda each: as_int(each[1].last_updated_at) or 0, default=None)

    def folders(self) -> dict[str, WorkspaceFile]:
        """What every ``workspace.json`` says, by workspace id."""
        if self._folders is None:
            found = {storage.id: _workspace_file(storage) for storage in locations.storages(self.root)}
            self._folders = {name: note for name, note in found.items() if note is not None}
        return self._folders

    def storage_ids(self, folder: Address) -> list[str]:
        """Every id Cursor has had for a folder: moving or making it anew gives it another."""
        if self._storage_ids is None:
            self._storage_ids = {}
            for name, note in self.folders().items():
                spelling = note.folder._replace(path=normalize_path(note.folder.path))
                self._storage_ids.setdefault(spelling, []).append(name)
        return self._storage_ids.get(folder._replace(path=normalize_path(folder.path)), [])

    def images(self) -> dict[str, Path]:
        """Pasted images that are still there, by the uuid at the end of their names."""
        if self._images is None:
            self._images = {}
            for storage in locations.storages(self.root):
                for path in locations.images(storage):
                    self._images[path.stem[-36:].lower()] = path
        return self._images

    def slugs(self, session: str) -> set[str]:
        """The project folders below which the agent wrote a transcript of a session."""
        if self._slugs is None:
            self._slugs = {}
            home = locations.agent_home(self.root)
            for path in sorted(home.glob("projects/*/agent-transcripts/*")) if home else []:
                self._slugs.setdefault(path.stem, set()).add(path.parts[-3])
        return self._slugs.get(session, set())

    def _ask(self, path: Path, work: Callable[[sqlite3.Connection], T]) -> T | None:
        return self._try(path, lambda: self.database(path).read(work))

    def _try(self, path: Path, work: Callable[[], T]) -> T | None:
        """The answer of a database, or None and a fault. Who holds it is not waited for a second time."""
        if isinstance(self.faults.get(path), DatabaseLockedError):
            return None
        self._tokens.setdefault(path, change_token(path))
        try:
            return work()
        except DatabaseNotFoundError:
            return None
        except (BackscrollError, sqlite3.Error) as error:
            self.faults[path] = error
            return None


def _sessions(connection: sqlite3.Connection) -> dict[str, keys.Rows]:
    return keys.sessions(connection) if keys.has_table(connection, "cursorDiskKV") else {}


def _workspace_file(storage: locations.Storage) -> WorkspaceFile | None:
    path = storage.folder / "workspace.json"
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST_NOTE:
            return None
        fields = as_map(decode(Raw(path.read_bytes()), object))
    except (OSError, UndecodableError):
        return None
    if found := parse_uri(fields.get("folder")):
        return WorkspaceFile(found)
    if found := parse_uri(fields.get("workspace") or fields.get("configuration")):
        return WorkspaceFile(found, is_multi_root=True)
    return None
