"""New paths and contents of files that are restored from a backup onto another machine.

Cursor derives the id of a workspace from the path and the inode of its folder. The storage of a workspace
gets the id that Cursor will compute, and all lists and records of its sessions name it.
"""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from sqlite3 import Connection
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from msgspec import Raw

from backscroll.model.safekeeping.backup import BackupFolder
from backscroll.model.safekeeping.path_maps import PathMaps
from backscroll.readers.sqlite.connection import as_bytes
from backscroll.sources.capabilities import Relocation
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode
from backscroll.sources.cursor.uri import Address, parse_uri
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing.path_map import PathMap
from backscroll.sources.cursor.writing.workspace_target import folder_id

__all__ = ["relocate"]

_STORAGES = "User/workspaceStorage/"
_SAFE_CHARACTERS = "/-._~"
_FOLDER_FIELDS = ("folder", "workspace", "configuration")


class _Paths(PathMap):
    """Replaces paths in records with several pairs of folders."""

    def __init__(self, maps: PathMaps) -> None:
        self._maps = maps
        # Paths of Windows have escaped backslashes in JSON, and slashes and an escaped drive in URIs.
        tails = {folder.replace("\\", "/").rpartition("/")[2] for folder in maps.old_folders}
        self._marks = tuple(
            text.encode() for tail in tails for text in {tail, quote(tail, safe=_SAFE_CHARACTERS)}
        )

    def path(self, text: str) -> str:
        if not text.startswith("file://"):
            return self._maps.path(text) or text
        new = self._maps.path(unquote(text.removeprefix("file://")))
        if new is None:
            return text
        path = new.replace("\\", "/")
        return "file://" + quote(path if path.startswith("/") else f"/{path}", safe=_SAFE_CHARACTERS)


def relocate(files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
    """Return the new paths and contents of the files of a root."""
    return CursorRelocation(files, maps, old_root, root)


class CursorRelocation(Relocation):
    """New paths and contents of the files of one root."""

    def __init__(self, files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> None:
        self._storages: dict[str, str] = {}
        self._missing: list[str] = []
        pairs = [*maps.pairs]
        for storage, folder in _workspace_folders(files):
            new = maps.path(folder)
            if new is None:
                continue
            new_id = self._storages[storage] = self._new_id(new, storage, root)
            pairs.append((_join(old_root, _STORAGES + storage), str(root / _STORAGES / new_id)))
        self._paths = _Paths(PathMaps(pairs))
        self.warnings = tuple(
            f"{folder} does not exist, so its sessions keep their old workspace id. Create the folder and"
            " restore again, or run 'backscroll doctor --moved' later."
            for folder in self._missing
        )

    def _new_id(self, folder: str, old_id: str, root: Path) -> str:
        """Return the id of a folder's storage: of an existing storage, or as Cursor computes it."""
        user_data = UserData(root)
        try:
            existing = user_data.folder_storage_ids(Address(folder))
        finally:
            user_data.close()
        if existing:
            return existing[0]
        try:
            return folder_id(folder, Path(folder).stat())
        except OSError:
            self._missing.append(folder)
            return old_id

    def path(self, path: str) -> str:
        storage, slash, rest = path.removeprefix(_STORAGES).partition("/")
        if not path.startswith(_STORAGES) or storage not in self._storages:
            return path
        return f"{_STORAGES}{self._storages[storage]}{slash}{rest}"

    def content(self, path: str, blocks: Iterable[bytes]) -> Iterable[bytes] | None:
        if PurePosixPath(path).name != "workspace.json":
            return None
        content = b"".join(blocks)
        try:
            fields = as_map(decode(content, object))
        except UndecodableError:
            return [content]
        changed = {
            name: self._paths.path(value) if name in _FOLDER_FIELDS and isinstance(value, str) else value
            for name, value in fields.items()
        }
        return [msgspec.json.encode(changed) if changed != fields else content]

    def edit_database(self, path: str, connection: Connection) -> None:
        """Replace workspaces and paths in all records and lists. Message text stays as it is."""
        if keys.has_table(connection, "composerHeaders"):
            self._edit_headers(connection)
        if keys.has_table(connection, "cursorDiskKV"):
            self._edit_records(connection)
        if keys.has_table(connection, "ItemTable"):
            for key in (session_lists.HEADERS_KEY, session_lists.COMPOSERS_KEY, session_lists.PROJECTS_KEY):
                self._edit_value(connection, "ItemTable", key, self._list)

    # Rows

    def _edit_headers(self, connection: Connection) -> None:
        rows = connection.execute("select rowid, workspaceId, value from composerHeaders").fetchall()
        for rowid, workspace, value in rows:
            old_id = (as_bytes(workspace) or b"").decode("utf-8", "replace")
            data = as_bytes(value) or b""
            new = self._head(data)
            new_id = self._storages.get(old_id, old_id)
            if (new, new_id) != (data, old_id):
                connection.execute(
                    "update composerHeaders set workspaceId = ?, value = cast(? as text) where rowid = ?",
                    [new_id, new, rowid],
                )

    def _edit_records(self, connection: Connection) -> None:
        for family, edit in (("composerData:", self._composer), ("bubbleId:", self._paths.bubble)):
            rows = connection.execute(
                "select rowid from cursorDiskKV where key >= ? and key < ? order by rowid",
                [family, f"{family[:-1]};"],
            ).fetchall()
            for (rowid,) in rows:
                self._edit_row(connection, rowid, edit)

    def _edit_row(self, connection: Connection, rowid: int, edit: Any) -> None:
        query = "select value, typeof(value) = 'text' from cursorDiskKV where rowid = ?"
        value, is_text = connection.execute(query, [rowid]).fetchone()
        data = as_bytes(value)
        if data is None or (edit == self._paths.bubble and not self._paths.may_apply(data)):
            return
        new = edit(data)
        if new != data:
            kind = "text" if is_text else "blob"
            update = f"update cursorDiskKV set value = cast(? as {kind}) where rowid = ?"  # noqa: S608
            connection.execute(update, [new, rowid])

    def _edit_value(self, connection: Connection, table: str, key: str, edit: Any) -> None:
        row = connection.execute(
            f"select value, typeof(value) = 'text' from {table} where key = ?",  # noqa: S608 - a constant
            [key],
        ).fetchone()
        if row is None or (data := as_bytes(row[0])) is None:
            return
        new = edit(data)
        if new != data:
            kind = "text" if row[1] else "blob"
            update = f"update {table} set value = cast(? as {kind}) where key = ?"  # noqa: S608
            connection.execute(update, [new, key])

    # Values

    def _composer(self, value: bytes) -> bytes:
        try:
            fields = decode(value, dict[str, Raw])
        except UndecodableError:
            return value
        unchanged = dict(fields)
        if "workspaceIdentifier" in fields:
            fields["workspaceIdentifier"] = self._identifier(fields["workspaceIdentifier"])
        self._paths.composer(fields)
        return msgspec.json.encode(fields) if fields != unchanged else value

    def _head(self, value: bytes) -> bytes:
        """Return a list entry with the new workspace."""
        try:
            fields = decode(value, dict[str, Raw])
        except UndecodableError:
            return value
        unchanged = dict(fields)
        for name in ("workspaceIdentifier", "workspace"):
            if name in fields:
                fields[name] = self._identifier(fields[name])
        self._paths.composer(fields)
        return msgspec.json.encode(fields) if fields != unchanged else value

    def _list(self, value: bytes) -> bytes:
        """Return a list of entries, bare or in an object, with the new workspaces."""
        try:
            if value.lstrip().startswith(b"["):
                entries = decode(value, list[Raw])
                changed = [Raw(self._head(bytes(entry))) for entry in entries]
                return msgspec.json.encode(changed) if changed != entries else value
            fields = decode(value, dict[str, Raw])
            if "allComposers" not in fields:
                return value
            before = bytes(fields["allComposers"])
            after = self._list(before)
        except UndecodableError:
            return value
        return msgspec.json.encode({**fields, "allComposers": Raw(after)}) if after != before else value

    def _identifier(self, raw: Raw) -> Raw:
        """Return the identifier of a workspace with its new id and URI."""
        try:
            identifier = as_map(decode(raw, object))
        except UndecodableError:
            return raw
        new = {
            name: self._paths.uri(value) if name in ("uri", "configPath") else value
            for name, value in identifier.items()
        }
        if (old_id := as_text(identifier.get("id"))) in self._storages:
            new["id"] = self._storages[old_id]
        return Raw(msgspec.json.encode(new)) if new != identifier else raw


def _workspace_folders(files: BackupFolder) -> Iterable[tuple[str, str]]:
    """Yield the storage ids of local folders, with their folders."""
    for path in files.paths:
        storage, _, name = path.removeprefix(_STORAGES).partition("/")
        if not path.startswith(_STORAGES) or name != "workspace.json":
            continue
        try:
            fields = as_map(decode(b"".join(files.read(path)), object))
        except UndecodableError:
            continue
        if (found := parse_uri(fields.get("folder"))) is not None and not found.authority:
            yield storage, found.path


def _join(root: str, path: str) -> str:
    separator = "\\" if "\\" in root and "/" not in root else "/"
    return separator.join([root.rstrip("/\\"), *path.split("/")])
