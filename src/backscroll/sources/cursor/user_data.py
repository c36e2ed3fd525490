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
from backscroll.sources.cursor.database.decode import Undecodable, as_int, as_map, decode
from backscroll.sources.cursor.database.record_types import Composer
from backscroll.sources.cursor.database.session_rows import Warehouse
from backscroll.sources.cursor.side_databases import Side
from backscroll.sources.cursor.uri import Address, address

__all__ = ["Library", "Shelfmark", "WorkspaceFile"]

T = TypeVar("T")

_LARGEST_NOTE = 1024 * 1024  # a workspace.json is a line; anything larger is none


class WorkspaceFile(Struct, frozen=True):
    """What a ``workspace.json`` says."""

    address: Address
    is_multi_root: bool = False


class Shelfmark(Struct, frozen=True):
    """A database that may hold sessions, and the workspace it is of."""

    path: Path
    storage: str = ""  # empty for the global one


class Library:
    """The databases and lists below one root. Lists are read once; `refresh` notices that they changed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.side = Side(root)
        self.faults: dict[Path, BackscrollError | sqlite3.Error] = {}
        self._tokens: dict[Path, str] = {}
        self._open: dict[Path, Database] = {}
        self._warehouses: dict[Path, Warehouse] = {}
        self._heads: session_lists.Heads | None = None
        self._lists: dict[str, session_lists.Lists] = {}
        self._sessions: dict[Path, dict[str, keys.Rows]] = {}
        self._folders: dict[str, WorkspaceFile] | None = None
        self._members: dict[str, list[str]] | None = None
        self._marks: list[Shelfmark] | None = None
        self._storage_ids: dict[Address, list[str]] | None = None
        self._images: dict[str, Path] | None = None
        self._slugs: dict[str, set[str]] | None = None

    @property
    def global_path(self) -> Path:
        return locations.global_database(self.root)

    def databases(self) -> list[Shelfmark]:
        """The global database first, then the workspaces' own in the order of their ids."""
        if self._marks is None:
            self._marks = [Shelfmark(path, storage) for path, storage in locations.databases(self.root)]
        return self._marks

    def refresh(self) -> None:
        """Forget what was read from databases that have changed or could not be read, and what is beside."""
        for path, token in list(self._tokens.items()):
            if path in self.faults or change_token(path) != token:
                self._forget(path)
        self._members = self._folders = self._images = self._slugs = None
        self._marks = self._storage_ids = None
        self.side = Side(self.root)

    def token(self, path: Path) -> str:
        """How a database stood before anything that is known of it was read."""
        return self._tokens.get(path) or change_token(path)

    def _forget(self, path: Path) -> None:
        del self._tokens[path]
        self.faults.pop(path, None)
        self._sessions.pop(path, None)
        if path in self._warehouses:
            self._warehouses[path].drop()
        if path == self.global_path:
            self._heads = None
        self._lists.pop(path.parent.name if path != self.global_path else "", None)
        self._members = None

    def close(self) -> None:
        """Close all databases. Those that could not be read are asked again by whoever goes on."""
        for path in list(self.faults):
            self._forget(path)
        for warehouse in self._warehouses.values():
            warehouse.drop()
        for database in self._open.values():
            database.close()
        self._open.clear()
        self._warehouses.clear()

    def database(self, path: Path) -> Database:
        """The database at a path, kept open until `close`; of those of workspaces only one at a time."""
        if path not in self._open:
            for other in [each for each in self._open if each != self.global_path]:
                self._open.pop(other).close()
                if other in self._warehouses:
                    self._warehouses.pop(other).drop()
            self._open[path] = Database(path)
        return self._open[path]

    def warehouse(self, path: Path) -> Warehouse:
        database = self.database(path)
        if path not in self._warehouses:
            self._warehouses[path] = Warehouse(database)
        return self._warehouses[path]

    def sessions(self, path: Path) -> dict[str, keys.Rows]:
        """Every session that has rows in a database, from its keys alone."""
        if path not in self._sessions:
            found = self._try(path, lambda: self.warehouse(path).walk(_sessions))
            self._sessions[path] = found or {}
        return self._sessions[path]

    def heads(self) -> session_lists.Heads:
        """The list of the global database that is to be believed; one that cannot be read has no stand-in."""
        if self._heads is None:
            path = self.global_path
            found = self._ask(path, session_lists.heads) if locations.is_file(path) else None
            fault = self.faults.get(path)
            self._heads = found or (
                session_lists.Heads("table", fault=str(fault)) if fault else session_lists.Heads()
            )
        return self._heads

    def lists(self, mark: Shelfmark) -> session_lists.Lists:
        """What a database's own keys list."""
        if mark.storage not in self._lists:
            self._lists[mark.storage] = self._ask(mark.path, session_lists.lists) or session_lists.Lists()
        return self._lists[mark.storage]

    def entry(self, session: str) -> session_lists.Entry | None:
        """What the believed list says of a session; a workspace's own list where no other has it."""
        found = self.heads().entries.get(session)
        if found is not None or self.heads().fault:
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
            for mark in self.databases():
                if not mark.storage:
                    continue
                found = self.lists(mark)
                for name in found.entries:
                    listed.setdefault(name, []).append(mark.storage)
                for name in found.shown - found.entries.keys():
                    shown.setdefault(name, []).append(mark.storage)
            for name, storages in shown.items():
                listed.setdefault(name, []).extend(storages)
            self._members = listed
        return self._members.get(session, [])

    def inline(self, session: str) -> tuple[Path, Composer] | None:
        """A session's record out of the workspaces' own lists, where one has its conversation; the newest."""
        found: list[tuple[Path, Composer]] = []
        for mark in self.databases():
            if mark.storage and session in self.lists(mark).inline:
                record = self._ask(mark.path, lambda connection: session_lists.inline(connection, session))
                found += [(mark.path, record)] if record is not None else []
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
                spelling = note.address._replace(path=normalize_path(note.address.path))
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
    except (OSError, Undecodable):
        return None
    if found := address(fields.get("folder")):
        return WorkspaceFile(found)
    if found := address(fields.get("workspace") or fields.get("configuration")):
        return WorkspaceFile(found, is_multi_root=True)
    return None
