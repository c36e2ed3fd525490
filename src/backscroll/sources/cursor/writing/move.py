"""Plan the move of a session to another workspace."""

from pathlib import Path

import msgspec
from msgspec import Raw

from backscroll.sources.cursor.database.decode import decode
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing import list_edits
from backscroll.sources.cursor.writing.path_map import PathMap
from backscroll.sources.cursor.writing.session_keys import (
    check_listed,
    check_tab,
    composer_key,
    descendants,
    session_keys,
)
from backscroll.sources.cursor.writing.store_edits import StoreEdits
from backscroll.sources.cursor.writing.store_version import check_composer, check_store
from backscroll.sources.cursor.writing.workspace_target import WorkspaceTarget, find_or_create

__all__ = ["plan_move"]


def plan_move(user_data: UserData, session_id: str, *, folder: str | None, target: Path) -> StoreEdits:
    """Return the edits that move a session and its subagents to a local folder.

    ``folder`` is the current folder of the session, if it is known: paths below it are mapped.
    """
    edits = StoreEdits(user_data)
    check_store(user_data, edits)
    check_tab(user_data, session_id)
    check_listed(user_data, session_id)
    workspace = find_or_create(edits, target)
    paths = PathMap(folder, str(target)) if folder else None
    for moved_id in (session_id, *descendants(user_data, session_id)):
        _move(edits, moved_id, workspace, paths, target.name)
    list_edits.bump_version(edits)
    return edits


def _move(
    edits: StoreEdits, session_id: str, workspace: WorkspaceTarget, paths: PathMap | None, name: str
) -> None:
    """Move one session."""
    identifier = Raw(msgspec.json.encode(workspace.identifier))

    def set_workspace(fields: dict[str, Raw]) -> None:
        fields["workspaceIdentifier"] = identifier

    is_in_global_list = list_edits.edit_global_entries(
        edits, session_id, set_workspace, {"workspaceId": workspace.id}
    )
    if is_in_global_list:
        list_edits.set_project(edits, session_id, workspace.identifier, name)
    is_listed = _move_in_workspaces(edits, session_id, workspace)
    # Before Cursor 3.0 only the lists of workspaces name the workspace of a session.
    is_old = is_listed and not is_in_global_list
    _edit_rows(edits, session_id, None if is_old else identifier, paths)


def _edit_rows(edits: StoreEdits, session_id: str, identifier: Raw | None, paths: PathMap | None) -> None:
    """Change the workspace and the paths in the rows of a session."""
    database = edits.user_data.global_path
    for key in session_keys(edits.user_data, session_id):
        value = edits.value(database, key)
        if value is None:
            continue
        if key == composer_key(session_id):
            check_composer(edits.user_data, value)
            fields = decode(value, dict[str, Raw])
            unchanged = dict(fields)
            if identifier is not None:
                fields["workspaceIdentifier"] = identifier
            if paths is not None:
                paths.composer(fields)
            if fields != unchanged:
                edits.put(database, key, msgspec.json.encode(fields), label="session")
        elif key.startswith("bubbleId:") and paths is not None and paths.may_apply(value):
            edits.put(database, key, paths.bubble(value), label="message")


def _move_in_workspaces(edits: StoreEdits, session_id: str, workspace: WorkspaceTarget) -> bool:
    """Move the entries of a session from the lists of other workspaces to the target's.

    Return whether there are any.
    """
    user_data = edits.user_data
    is_found = False
    for file in user_data.databases():
        lists = user_data.database_lists(file)
        if file.path == workspace.database:
            continue
        if session_id in lists.entries or session_id in lists.open_ids:
            entry = list_edits.remove_workspace_entry(edits, file.path, session_id)
            if entry is not None:
                list_edits.add_workspace_entry(edits, workspace.database, session_id, entry)
                is_found = True
        if any(tab.id == session_id for tab in lists.tabs):
            tab = list_edits.remove_tab(edits, file.path, session_id)
            if tab is not None:
                list_edits.add_tab(edits, workspace.database, session_id, tab)
                is_found = True
    return is_found
