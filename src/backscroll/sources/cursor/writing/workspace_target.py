"""The storage of a target folder, created if Cursor has never opened the folder."""

import os
import sys
from hashlib import md5
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from backscroll.model.safekeeping.changes import FileChange
from backscroll.sources.cursor.database.decode import as_map
from backscroll.sources.cursor.uri import Address
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing.store_edits import StoreEdits

__all__ = ["WorkspaceTarget", "find_or_create", "folder_id"]

_SAFE_CHARACTERS = "/-._~"


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
