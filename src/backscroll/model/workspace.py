"""Workspaces: the folders that sessions belong to.

Also folders that were moved, and maps from the paths of one machine to those of another.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.message import Time

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
    updated_at: Time | None  # of its newest session


def normalize_path(path: str) -> str:
    """Return the canonical form: NFC, forward slashes, lower-case drive letter, no trailing slash."""
    path = unicodedata.normalize("NFC", path)
    if ":" in path[:3] and (drive := re.match(_DRIVE, path)):
        path = f"{drive[1].lower()}:{path[drive.end() :]}".replace("\\", "/")
    elif path.startswith("\\\\"):
        path = path.replace("\\", "/")
    return path.rstrip("/") or path[:1]


def workspace_hash(path: str | None, *, authority: str = "") -> str:
    """Return 32 hex digits that are the same for all sources, or ``unknown``.

    Windows ignores the case of names, so a path with a drive letter or a share is hashed in lower case.
    """
    if not path:
        return UNKNOWN_WORKSPACE
    from hashlib import sha256  # start-up time: few callers need it

    spelling = normalize_path(path)
    if spelling[1:2] == ":" or path.startswith("\\\\"):
        spelling = spelling.lower()
    whole = f"{authority}{spelling}" if not authority else f"{authority}:{spelling}"
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]


MoveEvidenceKind = Literal["inode", "commit", "remote", "files", "name"]


class MoveEvidence(Struct, frozen=True):
    """A reason why a folder may be the one that was moved."""

    kind: MoveEvidenceKind
    detail: str  # for people


class MoveCandidate(Struct, frozen=True):
    """A folder that may be the moved one."""

    path: str
    evidence: tuple[MoveEvidence, ...]  # the strongest first
    level: int  # strength of the strongest evidence; the larger, the stronger


class MovedWorkspace(Struct, frozen=True, kw_only=True):
    """A workspace folder that no longer exists and has sessions."""

    path: str
    session_count: int
    sources: tuple[str, ...]
    candidates: tuple[MoveCandidate, ...]  # the strongest first

    @property
    def new_path(self) -> str | None:
        """The only folder with the strongest evidence; None if there are several, or none."""
        best = [one for one in self.candidates if one.level == self.candidates[0].level]
        return best[0].path if len(best) == 1 else None


class MovedWorkspaces(Struct, frozen=True, kw_only=True):
    """Result of the search for moved folders."""

    workspaces: tuple[MovedWorkspace, ...]
    searched: tuple[str, ...]  # folders whose subfolders were compared
    is_search_complete: bool  # False if a folder has too many subfolders to compare all


class PathMaps:
    """Pairs of an old and a new folder. The longest old folder that contains a path applies.

    A path changes only at the end of a component. The rest of it gets the separator of the new folder.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
        found = [(_parts(old), new.rstrip("/\\") or new) for old, new in self.pairs]
        self._parsed = sorted(found, key=lambda pair: -len(pair[0]))
        self.old_folders = tuple(old.rstrip("/\\") or old for old, _ in self.pairs)

    def __bool__(self) -> bool:
        return bool(self._parsed)

    def followed_by(self, later: "PathMaps") -> "PathMaps":
        """Return maps with the effect of these and then the later ones."""
        own = [(old, later.path(new) or new) for old, new in self.pairs]
        # A later folder below a new one is reached from below the old one.
        below = [
            ("/".join([old.rstrip("/\\"), *_parts(folder)[len(_parts(new)) :]]), target)
            for old, new in self.pairs
            for folder, target in later.pairs
            if _parts(new) == _parts(folder)[: len(_parts(new))] and _parts(new) != _parts(folder)
        ]
        return PathMaps([*own, *below, *later.pairs])

    def followed_by_each(self, pairs: Iterable[tuple[str, str]]) -> "PathMaps":
        """Return maps with the effect of these and then each pair, in order."""
        maps = self
        for pair in pairs:
            maps = maps.followed_by(PathMaps([pair]))
        return maps

    def path(self, path: str) -> str | None:
        """Return the new path; None if the path is not an old folder and not below one."""
        parts = _parts(path)
        for old, new in self._parsed:
            if parts[: len(old)] == old:
                separator = "\\" if "\\" in new and "/" not in new else "/"
                rest = parts[len(old) :]
                if path.endswith(("/", "\\")) and parts != [""]:
                    rest.append("")
                return separator.join([new.rstrip("/\\"), *rest]) or new
        return None


def mapped_workspace(workspace: Workspace, maps: PathMaps) -> Workspace:
    """Return a workspace with its new folders. One on another host stays as it is."""
    if workspace.authority:
        return workspace
    return replace(
        workspace,
        path=maps.path(workspace.path) or workspace.path,
        folders=tuple(maps.path(folder) or folder for folder in workspace.folders),
    )


def _parts(path: str) -> list[str]:
    """Return the components of a path, without an end slash. A drive letter is in lower case, as in URIs.

    Only in paths of Windows, backslashes are separators.
    """
    drive = re.match(_DRIVE, path)
    if drive is not None:
        path = f"{drive[1].lower()}:{path[drive.end() :]}"
    if drive is not None or path.startswith("\\\\"):
        path = path.replace("\\", "/")
    return path.rstrip("/").split("/")
