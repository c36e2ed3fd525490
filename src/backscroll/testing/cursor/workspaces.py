"""The workspaces Cursor knows: what lies in ``workspaceStorage`` and how sessions name it."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from backscroll.testing.cursor.bubbles import dumps

__all__ = [
    "Place",
    "container",
    "empty_window",
    "local",
    "multi_root",
    "ssh",
    "windows",
    "write_code_workspace",
    "wsl",
]


@dataclass(frozen=True)
class Place:
    """One folder below ``workspaceStorage``, and what it stands for."""

    id: str
    uri: str | None = None  # None: an empty window
    kind: Literal["folder", "workspace"] = "folder"
    path: str = ""
    authority: str = ""

    @property
    def workspace_json(self) -> str | None:
        """The content of ``workspace.json``; an empty window has none."""
        return None if self.uri is None else dumps({self.kind: self.uri})

    @property
    def identifier(self) -> dict[str, Any]:
        """The ``workspaceIdentifier`` that a session of this workspace carries."""
        if self.uri is None:
            return {"id": self.id}
        scheme = "vscode-remote" if self.authority else "file"
        uri: dict[str, Any] = {"$mid": 1, "fsPath": self.path, "external": self.uri, "path": self.path}
        uri["scheme"] = scheme
        if self.authority:
            uri["authority"] = self.authority
        return {"id": self.id, "configPath" if self.kind == "workspace" else "uri": uri}


def local(path: str, *, inode: int = 1835009) -> Place:
    """A folder on this machine; the id is salted with its inode, as on Linux."""
    return Place(_md5(f"{path}{inode}"), f"file://{quote(path)}", path=path)


def windows(path: str, *, born: int = 1717000000000) -> Place:
    """A folder such as ``C:\\Users\\dev\\shop``; the id is salted with its time of birth."""
    drive, rest = path[0].lower(), path[2:].replace("\\", "/")
    return Place(_md5(f"{path}{born}"), f"file:///{drive}%3A{quote(rest)}", path=f"/{drive}:{rest}")


def multi_root(path: str) -> Place:
    """A workspace of several folders, kept in a ``.code-workspace`` file."""
    return Place(_md5(path), f"file://{quote(path)}", "workspace", path)


def write_code_workspace(path: Path, folders: Sequence[str]) -> None:
    """The ``.code-workspace`` file itself."""
    path.write_text(dumps({"folders": [{"path": folder} for folder in folders], "settings": {}}))


def ssh(host: str, path: str) -> Place:
    """A folder on another machine."""
    return _remote(f"ssh-remote+{host}", path)


def wsl(distribution: str, path: str) -> Place:
    """A folder inside a Linux distribution under Windows."""
    return _remote(f"wsl+{distribution}", path)


def container(config: str, path: str) -> Place:
    """A folder inside a development container; ``config`` is hex text in real life."""
    return _remote(f"dev-container+{config}", path)


def empty_window(opened: int = 1790000000000) -> Place:
    """A window with no folder: its id is the time it was opened."""
    return Place(str(opened))


def _remote(authority: str, path: str) -> Place:
    uri = f"vscode-remote://{quote(authority, safe='')}{quote(path)}"
    return Place(_md5(uri), uri, path=path, authority=authority)


def _md5(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()
