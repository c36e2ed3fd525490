"""Workspaces: folders of ``workspaceStorage`` and the identifiers that sessions store."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from backscroll.testing.cursor.bubbles import dumps


@dataclass(frozen=True)
class Workspace:
    """Workspace with its folder in ``workspaceStorage``."""

    id: str
    uri: str | None = None  # None: an empty window
    kind: Literal["folder", "workspace"] = "folder"
    path: str = ""
    authority: str = ""

    @property
    def workspace_json(self) -> str | None:
        """Content of ``workspace.json``. An empty window has none."""
        return None if self.uri is None else dumps({self.kind: self.uri})

    @property
    def identifier(self) -> dict[str, Any]:
        """Value of ``workspaceIdentifier`` in a session of this workspace."""
        if self.uri is None:
            return {"id": self.id}
        scheme = "vscode-remote" if self.authority else "file"
        uri: dict[str, Any] = {"$mid": 1, "fsPath": self.path, "external": self.uri, "path": self.path}
        uri["scheme"] = scheme
        if self.authority:
            uri["authority"] = self.authority
        return {"id": self.id, "configPath" if self.kind == "workspace" else "uri": uri}


def local_folder(path: str, *, inode: int = 1835009) -> Workspace:
    """Return the workspace of a local folder. As on Linux, its id depends on the inode."""
    return Workspace(_md5(f"{path}{inode}"), f"file://{quote(path)}", path=path)


def windows_folder(path: str, *, created_ms: int = 1717000000000) -> Workspace:
    """Return the workspace of a folder on Windows. Its id depends on the creation time."""
    drive, rest = path[0].lower(), path[2:].replace("\\", "/")
    return Workspace(_md5(f"{path}{created_ms}"), f"file:///{drive}%3A{quote(rest)}", path=f"/{drive}:{rest}")


def multi_root(path: str) -> Workspace:
    """Return a workspace of several folders, defined in a ``.code-workspace`` file."""
    return Workspace(_md5(path), f"file://{quote(path)}", "workspace", path)


def write_code_workspace(path: Path, folders: Sequence[str]) -> None:
    """Write a ``.code-workspace`` file."""
    path.write_text(dumps({"folders": [{"path": folder} for folder in folders], "settings": {}}))


def ssh_folder(host: str, path: str) -> Workspace:
    """Return the workspace of a folder on a remote host."""
    return _remote(f"ssh-remote+{host}", path)


def wsl_folder(distribution: str, path: str) -> Workspace:
    """Return the workspace of a folder in WSL."""
    return _remote(f"wsl+{distribution}", path)


def container_folder(config: str, path: str) -> Workspace:
    """Return the workspace of a folder in a development container. Cursor writes ``config`` as hex text."""
    return _remote(f"dev-container+{config}", path)


def empty_window(opened_ms: int = 1790000000000) -> Workspace:
    """Return the workspace of a window without a folder. Its id is the time when it was opened."""
    return Workspace(str(opened_ms))


def _remote(authority: str, path: str) -> Workspace:
    uri = f"vscode-remote://{quote(authority, safe='')}{quote(path)}"
    return Workspace(_md5(uri), uri, path=path, authority=authority)


def _md5(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


SHOP = local_folder("/home/dev/shop")
DOCS = local_folder("/home/dev/docs site", inode=1835010)
