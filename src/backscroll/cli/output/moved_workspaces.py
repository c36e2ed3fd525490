"""Workspace folders that are gone, and where they may be, as lines and as JSON."""

import shlex
from collections.abc import Iterator
from typing import Any

from backscroll.cli.output.hints import command_hint
from backscroll.model.safekeeping.moved import MoveCandidate, MovedWorkspace, MovedWorkspaces
from backscroll.model.text import pluralize

__all__ = ["moved_document", "moved_lines"]


def moved_lines(found: MovedWorkspaces) -> Iterator[str]:
    """Yield the folders that are gone, the reasons for each new place, and the commands to run."""
    if not found.workspaces:
        yield "The folders of all sessions exist."
        return
    for workspace in found.workspaces:
        yield from _workspace_lines(workspace)
        yield ""
    certain = [one for one in found.workspaces if one.new_path is not None]
    unclear = [one for one in found.workspaces if one.candidates and one.new_path is None]
    missing = [one for one in found.workspaces if not one.candidates]
    if certain:
        yield "To move the sessions, check the new folders, then run:"
        yield from (f"  {_command(one, one.new_path or '')}" for one in certain)
    if unclear:
        yield "Several folders are equally likely. For each old folder, run one of:"
        for one in unclear:
            yield from (f"  {_command(one, place.path)}" for place in _best(one))
    if missing:
        yield f"No new place was found for {pluralize(len(missing), 'folder')}. If it was moved, run:"
        yield f"  {command_hint('doctor --moved --search DIR')}"
    if not found.is_search_complete:
        yield "Not all folders were searched, because there are too many. Use --search with a smaller folder."


def _workspace_lines(workspace: MovedWorkspace) -> Iterator[str]:
    sessions = pluralize(workspace.session_count, "session")
    yield f"{workspace.path} no longer exists ({sessions}: {', '.join(workspace.sources)})."
    for candidate in workspace.candidates:
        mark = "→" if candidate.path == workspace.new_path else "?"
        evidence = ", ".join(one.detail for one in candidate.evidence)
        yield f"  {mark} {candidate.path}: {evidence}"
    if not workspace.candidates:
        yield "  No similar folder was found."


def _best(workspace: MovedWorkspace) -> list[MoveCandidate]:
    return [one for one in workspace.candidates if one.level == workspace.candidates[0].level]


def _command(workspace: MovedWorkspace, new_path: str) -> str:
    words = shlex.join([workspace.path, new_path])
    return command_hint(f"migrate-workspace {words} --mode move")


def moved_document(found: MovedWorkspaces) -> dict[str, Any]:
    """Return the folders that are gone as JSON. ``new_path`` and ``command`` are null unless one is best."""
    return {
        "data": [
            {
                "path": one.path,
                "session_count": one.session_count,
                "sources": list(one.sources),
                "new_path": one.new_path,
                "command": _command(one, one.new_path) if one.new_path is not None else None,
                "candidates": [
                    {
                        "path": candidate.path,
                        "evidence": [
                            {"kind": evidence.kind, "detail": evidence.detail}
                            for evidence in candidate.evidence
                        ],
                        "command": _command(one, candidate.path),
                    }
                    for candidate in one.candidates
                ],
            }
            for one in found.workspaces
        ],
        "searched": list(found.searched),
        "is_search_complete": found.is_search_complete,
    }
