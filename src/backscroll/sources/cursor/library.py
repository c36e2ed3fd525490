"""All that is known of one user-data folder, kept between two readings of it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Raw, Struct

from backscroll.errors import BackscrollError, DatabaseNotFoundError
from backscroll.readers.sqlite import Database, change_token
from backscroll.sources.cursor import index, keys, places
from backscroll.sources.cursor.decode import Undecodable, as_int, as_map, decode
from backscroll.sources.cursor.rows import Warehouse
from backscroll.sources.cursor.shape import Composer
from backscroll.sources.cursor.side import Side
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
        self._heads: index.Heads | None = None
        self._lists: dict[str, index.Lists] = {}
        self._sessions: dict[Path, dict[str, keys.Rows]] = {}
        self._folders: dict[str, WorkspaceFile] | None = None
        self._members: dict[str, list[str]] | None = None
        self._images: dict[str, Path] | None = None
        self._slugs: dict[str, set[str]] | None = None

    @property
    def global_path(self) -> Path:
        return places.global_database(self.root)

    def databases(self) -> list[Shelfmark]:
        """The global database first, then the workspaces' own in the order of their ids."""
        found = [Shelfmark(self.global_path)] if self.global_path.is_file() else []
        for storage in places.storages(self.root):
            if storage.database.is_file() and places.is_inside(storage.database, self.root):
                found.append(Shelfmark(storage.database, storage.id))
        return found

    def refresh(self) -> None:
        """Forget what was read from databases that have changed, and what lies beside them."""
        for path, token in list(self._tokens.items()):
            if change_token(path) == token:
                continue
            del self._tokens[path]
            self.faults.pop(path, None)
            self._sessions.pop(path, None)
            if path == self.global_path:
                self._heads = None
            self._lists.pop(path.parent.name if path != self.global_path else "", None)
        self._members = self._folders = self._images = self._slugs = None
        self.side = Side(self.root)

    def close(self) -> None:
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
                self._warehouses.pop(other, None)
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
            self._sessions[path] = self._ask(path, _sessions) or {}
        return self._sessions[path]

    def heads(self) -> index.Heads:
        """The list of the global database that is to be believed."""
        if self._heads is None:
            path = self.global_path
            self._heads = (self._ask(path, index.heads) if path.is_file() else None) or index.Heads()
        return self._heads

    def lists(self, mark: Shelfmark) -> index.Lists:
        """What a database's own keys list."""
        if mark.storage not in self._lists:
            self._lists[mark.storage] = self._ask(mark.path, index.lists) or index.Lists()
        return self._lists[mark.storage]

    def entry(self, session: str) -> index.Entry | None:
        """What the believed list says of a session; a workspace's own list where no other has it."""
        found = self.heads().entries.get(session)
        if found is not None:
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
                record = self._ask(mark.path, lambda connection: index.inline(connection, session))
                found += [(mark.path, record)] if record is not None else []
        return max(found, key=lambda each: as_int(each[1].last_updated_at) or 0, default=None)

    def folders(self) -> dict[str, WorkspaceFile]:
        """What every ``workspace.json`` says, by workspace id."""
        if self._folders is None:
            found = {storage.id: _workspace_file(storage) for storage in places.storages(self.root)}
            self._folders = {name: note for name, note in found.items() if note is not None}
        return self._folders

    def images(self) -> dict[str, Path]:
        """Pasted images that are still there, by the uuid at the end of their names."""
        if self._images is None:
            self._images = {}
            for storage in places.storages(self.root):
                folder = storage.folder / "images"
                if folder.is_dir() and not folder.is_symlink():
                    for path in sorted(folder.iterdir()):
                        self._images[path.stem[-36:].lower()] = path
        return self._images

    def slugs(self, session: str) -> set[str]:
        """The project folders below which the agent wrote a transcript of a session."""
        if self._slugs is None:
            self._slugs = {}
            home = places.agent_home(self.root)
            for path in sorted(home.glob("projects/*/agent-transcripts/*")) if home else []:
                self._slugs.setdefault(path.stem, set()).add(path.parts[-3])
        return self._slugs.get(session, set())

    def _ask(self, path: Path, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """The answer of a database, or None and a fault that the account of that database tells."""
        self._tokens.setdefault(path, change_token(path))
        try:
            return self.database(path).read(work)
        except DatabaseNotFoundError:
            return None
        except (BackscrollError, sqlite3.Error) as error:
            self.faults[path] = error
            return None


def _sessions(connection: sqlite3.Connection) -> dict[str, keys.Rows]:
    return keys.sessions(connection) if keys.has_table(connection, "cursorDiskKV") else {}


def _workspace_file(storage: places.Storage) -> WorkspaceFile | None:
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
