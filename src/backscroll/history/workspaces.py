"""Find a workspace by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backscroll.errors import WorkspaceNotFoundError
from backscroll.model.text import one_line

if TYPE_CHECKING:
    from backscroll.archive import Archive
    from backscroll.model.workspace import WorkspaceSummary

__all__ = ["find_workspace"]

_MAX_SUGGESTIONS = 5
_MAX_PATH_CHARS = 300


def find_workspace(archive: Archive, name: str) -> list[str]:
    """Return the hashes of the workspaces that match a path, a name, the end of a path or a host.

    Raises `WorkspaceNotFoundError` if none matches, with suggestions, or if the end of a path is ambiguous.
    """
    if found := archive.sessions.workspace_hashes(name):
        return found
    similar = _similar_paths(name, archive.sessions.workspaces())
    lines = "".join(f"\n  {one_line(path, _MAX_PATH_CHARS)}" for path in similar[:_MAX_SUGGESTIONS])
    reason = f"No session has the workspace {name!r}."
    if lines:
        raise WorkspaceNotFoundError(f"{reason} Similar workspaces:{lines}", name)
    raise WorkspaceNotFoundError(reason, name, hint="Run 'backscroll list' to see all sessions.")


def _similar_paths(name: str, workspaces: Iterable[WorkspaceSummary]) -> list[str]:
    """Return paths above or below the given one, and paths with a similar last component."""
    from difflib import get_close_matches  # start-up time

    path = name.casefold().rstrip("/")
    last = path.rpartition("/")[2]
    paths = {workspace.path: workspace.path.casefold().rstrip("/") for workspace in workspaces}
    names = {known: folded.rpartition("/")[2] for known, folded in paths.items()}
    above = [known for known, folded in paths.items() if path.startswith(f"{folded}/")]
    below = [known for known, folded in paths.items() if path and folded.startswith(f"{path}/")]
    similar = [known for known in paths if last and last in names[known]]
    close = get_close_matches(last, names.values())
    similar += [known for known in paths if names[known] in close]
    return list(dict.fromkeys([*sorted(above, key=len, reverse=True), *similar, *below]))
