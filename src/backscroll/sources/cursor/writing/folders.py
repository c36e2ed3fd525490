"""Folders of sessions: their paths in records, their storage, and their new places after a restore.

Cursor derives the id of a workspace from the path and the inode of its folder. A new storage gets the id that
Cursor will compute. Message text and everything that a model has seen stay unchanged.
"""

import os
import sys
from collections.abc import Iterable
from hashlib import md5
from pathlib import Path, PurePosixPath
from sqlite3 import Connection
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from backscroll.model.backup import BackupFolder
from backscroll.model.change import FileChange
from backscroll.model.stream import RawRow
from backscroll.model.workspace import PathMaps
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.capabilities import Relocation
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode
from backscroll.sources.cursor.uri import Address, parse_uri
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing.store_edits import StoreEdits

_PATH_PARAMETERS = (
    "relativeWorkspacePath",
    "targetFile",
    "filePath",
    "path",
    "cwd",
    "target_file",
    "file_path",
)
_URI_FIELDS = ("fsPath", "_fsPath", "path", "external", "_formatted")
_SAFE_CHARACTERS = "/-._~"  # as the editor writes URIs
_STORAGES = "User/workspaceStorage/"
_FOLDER_FIELDS = ("folder", "workspace", "configuration")


class RecordPaths:
    """Replaces folders in the paths and URIs of records."""

    def __init__(self, maps: PathMaps) -> None:
        self._maps = maps
        # Paths of Windows have escaped backslashes in JSON, and slashes and an escaped drive in URIs.
        tails = {folder.replace("\\", "/").rpartition("/")[2] for folder in maps.old_folders}
        self._marks = tuple(
            text.encode()
            for tail in tails
            for text in {tail, quote(tail, safe=_SAFE_CHARACTERS), _escaped(tail)}
        )

    def may_apply(self, value: bytes) -> bool:
        """Return whether a JSON value may contain one of the folders."""
        return any(mark in value for mark in self._marks)

    def path(self, text: str) -> str:
        """Map a path or a file URI. Other text is returned unchanged."""
        if not text.startswith("file://"):
            return self._maps.path(text) or text
        new = self._maps.path(unquote(text.removeprefix("file://")))
        if new is None:
            return text
        path = new.replace("\\", "/")
        return "file://" + quote(path if path.startswith("/") else f"/{path}", safe=_SAFE_CHARACTERS)

    def uri(self, document: Any) -> Any:
        """Map a URI: a text, or the editor's URI object."""
        return self._map_uris(document)

    def bubble(self, value: bytes) -> bytes:
        """Map the paths of a bubble: tool parameters, code blocks, context."""
        fields = _fields(value)
        if fields is None:
            return value
        tool = _fields(bytes(fields["toolFormerData"])) if "toolFormerData" in fields else None
        if tool is not None and "params" in tool:
            tool["params"] = self._parameters(tool["params"])
            fields["toolFormerData"] = Raw(msgspec.json.encode(tool))
        for name in ("codeBlocks", "context"):
            if name in fields:
                fields[name] = self._uris(fields[name])
        return _encoded(fields, value)

    def composer(self, fields: dict[str, Raw]) -> None:
        """Map the paths of a session's record, in place."""
        for name in ("context", "newlyCreatedFiles", "newlyCreatedFolders", "allAttachedFileCodeChunksUris"):
            if name in fields:
                fields[name] = self._uris(fields[name])
        for name in ("codeBlockData", "originalFileStates", "originalModelLines"):
            states = _fields(bytes(fields[name])) if name in fields else None
            if states is not None and self.may_apply(bytes(fields[name])):
                mapped = {self.path(uri): self._uris(state) for uri, state in states.items()}
                fields[name] = Raw(msgspec.json.encode(mapped))
        if "trackedGitRepos" in fields:
            fields["trackedGitRepos"] = self._mapped(fields["trackedGitRepos"], self._map_repos)

    def _parameters(self, raw: Raw) -> Raw:
        """Map the parameters of a tool call: an object, or JSON in a string."""
        data = bytes(raw)
        if not self.may_apply(data):
            return raw
        try:
            decoded = msgspec.json.decode(data)
            document = msgspec.json.decode(decoded) if isinstance(decoded, str) else decoded
        except msgspec.DecodeError:
            return raw
        if not isinstance(document, dict):
            return raw
        changed = {
            name: self.path(value) if name in _PATH_PARAMETERS and isinstance(value, str) else value
            for name, value in document.items()
        }
        if changed == document:
            return raw
        text = msgspec.json.encode(changed)
        return Raw(msgspec.json.encode(text.decode()) if isinstance(decoded, str) else text)

    def _uris(self, raw: Raw) -> Raw:
        return self._mapped(raw, self._map_uris)

    def _mapped(self, raw: Raw, change: Any) -> Raw:
        data = bytes(raw)
        if not self.may_apply(data):
            return raw
        try:
            document = msgspec.json.decode(data)
        except msgspec.DecodeError:
            return raw
        mapped = change(document)
        return Raw(msgspec.json.encode(mapped)) if mapped != document else raw

    def _map_uris(self, document: Any, *, is_uri: bool = True) -> Any:
        """Map URI objects and URI texts at any depth. Other texts stay unchanged."""
        if isinstance(document, str):
            return self.path(document) if is_uri else document
        if isinstance(document, list):
            return [self._map_uris(item, is_uri=is_uri) for item in document]
        if not isinstance(document, dict):
            return document
        has_path = "fsPath" in document or "_fsPath" in document or "scheme" in document
        return {
            name: self._map_uris(
                item, is_uri=name == "uri" or name.endswith("Uri") or (has_path and name in _URI_FIELDS)
            )
            for name, item in document.items()
        }

    def _map_repos(self, document: Any) -> Any:
        if isinstance(document, list):
            return [self._map_repos(item) for item in document]
        if isinstance(document, dict) and isinstance(document.get("repoPath"), str):
            return {**document, "repoPath": self.path(document["repoPath"])}
        return document


def _fields(value: bytes) -> dict[str, Raw] | None:
    """Return the undecoded fields of an object; None if it is not one."""
    if not value.lstrip().startswith(b"{"):
        return None
    try:
        return decode(value, dict[str, Raw])
    except UndecodableError:
        return None


def _encoded(fields: dict[str, Raw], value: bytes) -> bytes:
    """Encode fields again; the original value if they have not changed."""
    encoded = msgspec.json.encode(fields)
    unchanged = _fields(value)
    return value if unchanged is not None and msgspec.json.encode(unchanged) == encoded else encoded


def _escaped(text: str) -> str:
    """Return text as in JSON with escaped characters."""
    return "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in text)


# Storage of a folder


class WorkspaceTarget(NamedTuple):
    """Where sessions of a folder are listed."""

    id: str  # name of the folder below workspaceStorage
    identifier: dict[str, Any]  # as in the records of its sessions
    database: Path


def find_or_create(edits: StoreEdits, folder: Path) -> WorkspaceTarget:
    """Return the storage of a local folder, which must exist."""
    user_data = edits.user_data
    storages = user_data.root / "User" / "workspaceStorage"
    found = user_data.folder_storage_ids(Address(str(folder)))
    databases = [storages / found_id / "state.vscdb" for found_id in found]
    existing = [path for path in databases if path.is_file()]
    if existing:
        database = max(existing, key=lambda path: path.stat().st_mtime)
    else:
        new_id = found[0] if found else folder_id(str(folder), folder.stat())
        database = storages / new_id / "state.vscdb"
        edits.create_database(database)
        if not found:
            content = msgspec.json.encode({"folder": _file_uri(str(folder))})
            edits.add_file(
                FileChange(
                    path=database.with_name("workspace.json"),
                    content=lambda: [content],
                    before=None,
                    size=len(content),
                    label="workspace",
                    is_left_if_changed=True,
                )
            )
    workspace_id = database.parent.name
    return WorkspaceTarget(workspace_id, _identifier(user_data, workspace_id, folder), database)


def _identifier(user_data: UserData, workspace_id: str, folder: Path) -> dict[str, Any]:
    """Return the identifier as another session of this workspace has it, else a new one."""
    for entry in user_data.global_list().entries.values():
        identifier = as_map(entry.header.workspace_identifier)
        if identifier.get("id") == workspace_id and identifier.get("uri"):
            return identifier
    path = str(folder)
    uri = {"$mid": 1, "fsPath": path, "external": _file_uri(path), "path": path, "scheme": "file"}
    return {"id": workspace_id, "uri": uri}


def _file_uri(path: str) -> str:
    return "file://" + quote(path, safe=_SAFE_CHARACTERS)


def folder_id(path: str, stat: os.stat_result) -> str:
    """Return the id that Cursor computes: MD5 of the path and the folder's inode or time of creation."""
    if sys.platform == "linux":
        salt = str(stat.st_ino)
    else:
        salt = str(round(getattr(stat, "st_birthtime", stat.st_ctime) * 1000))
    return md5(f"{path}{salt}".encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


# Files of a backup, restored onto another machine


def relocate(files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
    """Return the new paths and contents of the files of a root."""
    return _CursorRelocation(files, maps, old_root, root)


class _CursorRelocation(Relocation):
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
        self._paths = RecordPaths(PathMaps(pairs))
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

    def row(self, row: RawRow) -> RawRow:
        """Return an archived row with new workspaces and paths."""
        if row.value is None:
            return row
        value = row.value
        if not row.table:
            content = self.content(row.path, [value])
            value = value if content is None else b"".join(content)
        elif row.table == "composerHeaders":
            columns = as_map(msgspec.json.decode(value))
            storage = as_text(columns.get("workspaceId"))
            head = self._head(as_text(columns.get("value")).encode()).decode()
            value = msgspec.json.encode(
                {**columns, "workspaceId": self._storages.get(storage, storage), "value": head}
            )
        elif row.part.startswith("allComposers[]/"):
            value = self._head(value)
        elif row.key.startswith("composerData:"):
            value = self._composer(value)
        elif row.key.startswith("bubbleId:") and self._paths.may_apply(value):
            value = self._paths.bubble(value)
        return replace(row, value=value)

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
