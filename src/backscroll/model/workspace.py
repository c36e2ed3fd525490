"""The folder a session belongs to, named the same whichever tool wrote it down."""

import re
import unicodedata
from datetime import datetime

from msgspec import Struct

__all__ = ["UNKNOWN_WORKSPACE", "Workspace", "WorkspaceSummary", "normalize_path", "workspace_hash"]

UNKNOWN_WORKSPACE = "unknown"

_DRIVE = re.compile(r"^/?([A-Za-z]):(?=[\\/]|$)")


class Workspace(Struct, frozen=True):
    """A folder, on this machine or on the host that ``authority`` names."""

    path: str  # as the tool wrote it
    authority: str = ""  # "ssh-remote+host", "wsl+Ubuntu", …; empty for this machine
    evidence: str = ""  # which of the tool's records named it
    folders: tuple[str, ...] = ()  # the roots of a multi-root workspace
    storage_ids: tuple[str, ...] = ()  # the tool's own ids for it

    @property
    def name(self) -> str:
        """The last part of the path, the way people call the folder."""
        stem = normalize_path(self.path).rstrip("/").rpartition("/")[2]
        return stem.removesuffix(".code-workspace") or self.path

    @property
    def hash(self) -> str:
        return workspace_hash(self.path, authority=self.authority)


class WorkspaceSummary(Struct, frozen=True, kw_only=True):
    """A workspace in a list."""

    path: str
    name: str | None
    host: str | None  # None for this machine
    session_count: int
    updated_at: datetime | None  # when the last of its sessions was


def normalize_path(path: str) -> str:
    """One spelling per folder: NFC, forward slashes, lower-case drive letter, no slash at the end."""
    path = unicodedata.normalize("NFC", path)
    if drive := _DRIVE.match(path):
        path = f"{drive[1].lower()}:{path[drive.end() :]}".replace("\\", "/")
    elif path.startswith("\\\\"):
        path = path.replace("\\", "/")
    return path.rstrip("/") or path[:1]


def workspace_hash(path: str | None, *, authority: str = "") -> str:
    """Thirty-two hex digits that are the same for every source, or ``unknown``."""
    if not path:
        return UNKNOWN_WORKSPACE
    from hashlib import sha256  # needed by few of those who need the rest

    spelling = normalize_path(path)
    whole = f"{authority}{spelling}" if not authority else f"{authority}:{spelling}"
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]
