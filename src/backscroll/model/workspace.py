"""Workspaces: the folders that sessions belong to."""

import re
import unicodedata
from datetime import datetime

from msgspec import Struct

__all__ = ["UNKNOWN_WORKSPACE", "Workspace", "WorkspaceSummary", "normalize_path", "workspace_hash"]

UNKNOWN_WORKSPACE = "unknown"

_DRIVE = r"^/?([A-Za-z]):(?=[\\/]|$)"  # compiled on first use


class Workspace(Struct, frozen=True):
    """A folder on this machine or on a remote host."""

    path: str  # as stored by the tool
    authority: str = ""  # "ssh-remote+host", "wsl+Ubuntu", …; empty for this machine
    evidence: str = ""  # the record it comes from
    folders: tuple[str, ...] = ()  # roots of a multi-root workspace
    storage_ids: tuple[str, ...] = ()  # ids that the tool uses for it

    @property
    def name(self) -> str:
        """Return the last part of the path."""
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
    updated_at: datetime | None  # of its newest session


def normalize_path(path: str) -> str:
    """Return the canonical form: NFC, forward slashes, lower-case drive letter, no trailing slash."""
    path = unicodedata.normalize("NFC", path)
    if ":" in path[:3] and (drive := re.match(_DRIVE, path)):
        path = f"{drive[1].lower()}:{path[drive.end() :]}".replace("\\", "/")
    elif path.startswith("\\\\"):
        path = path.replace("\\", "/")
    return path.rstrip("/") or path[:1]


def workspace_hash(path: str | None, *, authority: str = "") -> str:
    """Return 32 hex digits that are the same for all sources, or ``unknown``."""
    if not path:
        return UNKNOWN_WORKSPACE
    from hashlib import sha256  # start-up time: few callers need it

    spelling = normalize_path(path)
    whole = f"{authority}{spelling}" if not authority else f"{authority}:{spelling}"
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]
