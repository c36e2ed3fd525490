"""Workspace folders that no longer exist, and where they may have gone."""

from typing import Literal

from msgspec import Struct

__all__ = ["MoveCandidate", "MoveEvidence", "MovedWorkspace", "MovedWorkspaces"]

EvidenceKind = Literal["inode", "commit", "remote", "files", "name"]


class MoveEvidence(Struct, frozen=True):
    """A reason why a folder may be the one that was moved."""

    kind: EvidenceKind
    detail: str  # for people


class MoveCandidate(Struct, frozen=True):
    """A folder that may be the moved one."""

    path: str
    evidence: tuple[MoveEvidence, ...]  # the strongest first
    level: int  # strength of the strongest evidence; the larger, the stronger


class MovedWorkspace(Struct, frozen=True, kw_only=True):
    """A workspace folder that no longer exists and still has sessions in the tools' stores."""

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
