"""Plan the copy of a session to another workspace, under a new id.

Bubbles keep their ids: their keys contain the id of the session. The record of the copy names the original,
so that its messages are not counted again.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Raw

from backscroll.sources.cursor.database.decode import UndecodableError, as_map, decode, decode_each
from backscroll.sources.cursor.database.session_lists import inline_entry
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

__all__ = ["plan_copy"]

_CHILD_LISTS = ("subComposerIds", "subagentComposerIds")


def plan_copy(
    user_data: UserData, session_id: str, *, folder: str | None, target: Path
) -> tuple[StoreEdits, list[str]]:
    """Return the edits that copy a session and its subagents to a local folder.

    The new ids follow, that of the session first.
    """
    edits = StoreEdits(user_data)
    check_store(user_data, edits)
    check_tab(user_data, session_id)
    check_listed(user_data, session_id)
    workspace = find_or_create(edits, target)
    paths = PathMap(folder, str(target)) if folder else None
    new_ids = {old: str(uuid4()) for old in (session_id, *descendants(user_data, session_id))}
    mark = _copy_mark(session_id)
    for old_id in new_ids:
        _copy(edits, old_id, new_ids, workspace, paths, target.name, mark)
    list_edits.bump_version(edits)
    return edits, list(new_ids.values())


def _copy(
    edits: StoreEdits,
    old_id: str,
    new_ids: Mapping[str, str],
    workspace: WorkspaceTarget,
    paths: PathMap | None,
    name: str,
    mark: Raw,
) -> None:
    user_data, database, new_id = edits.user_data, edits.user_data.global_path, new_ids[old_id]
    head = _head(edits, old_id)
    is_global = head is not None
    for key in session_keys(user_data, old_id):
        value = edits.value(database, key)
        if value is None:
            continue
        new_key = key.replace(old_id, new_id, 1)
        if key == composer_key(old_id):
            check_composer(user_data, value)
            fields = decode(value, dict[str, Raw])
            _rename(fields, new_ids)
            if is_global or "workspaceIdentifier" in fields:
                fields["workspaceIdentifier"] = Raw(msgspec.json.encode(workspace.identifier))
            if paths is not None:
                paths.composer(fields)
            fields["copiedFrom"] = mark
            if "generatingBubbleIds" in fields:
                fields["generatingBubbleIds"] = Raw(b"[]")
            value = msgspec.json.encode(fields)
        elif key.startswith("bubbleId:") and paths is not None and paths.may_apply(value):
            value = paths.bubble(value)
        label = "session" if key == composer_key(old_id) else "message"
        edits.put(database, new_key, value, label=label, is_text=edits.is_text(database, key))
    if head is not None:
        _rename(head, new_ids)
        head["workspaceIdentifier"] = Raw(msgspec.json.encode(workspace.identifier))
        list_edits.add_global_entry(edits, new_id, head, workspace.id)
        list_edits.set_project(edits, new_id, workspace.identifier, name)
    _copy_in_workspaces(edits, old_id, new_ids, workspace, mark)


def _copy_mark(session_id: str) -> Raw:
    """Return the mark by which the reader recognizes the messages of a copy.

    Subagents are marked as copied from the session, too: they have no place of their own in a list.
    """
    return Raw(msgspec.json.encode({"composerId": session_id, "at": int(time.time() * 1000)}))


def _tab_mark(tab_id: str, fields: Mapping[str, Raw]) -> Raw:
    """Return the mark of a copied conversation of the chat panel. Most of its messages have no time."""
    lists = [decode_each(fields.get(name, Raw(b"[]")), Raw)[0] for name in ("bubbles", "messages")]
    return Raw(msgspec.json.encode({"composerId": tab_id, "messageCount": len(lists[0] or lists[1])}))


def _head(edits: StoreEdits, session_id: str) -> dict[str, Raw] | None:
    """Return the entry of a session in the global list."""
    entry = edits.user_data.global_list().entries.get(session_id)
    if entry is None:
        return None
    header = edits.header(session_id) if entry.is_row else None
    value = header["value"] if header is not None else entry.raw
    data = value.encode() if isinstance(value, str) else value
    return decode(data, dict[str, Raw]) if isinstance(data, bytes) and data else None


def _rename(fields: dict[str, Raw], new_ids: Mapping[str, str]) -> None:
    """Replace the ids of copied sessions in a record or list entry."""
    for name in ("composerId", "parentComposerId", "rootComposerId"):
        _replace_id(fields, name, new_ids)
    for name in _CHILD_LISTS:
        if name in fields:
            ids = msgspec.json.decode(bytes(fields[name]))
            if isinstance(ids, list):
                fields[name] = Raw(msgspec.json.encode([new_ids.get(one, one) for one in ids]))
    if "subagentInfo" in fields:
        info = as_map(msgspec.json.decode(bytes(fields["subagentInfo"])))
        if info:
            changed = {
                name: new_ids.get(value, value) if isinstance(value, str) else value
                for name, value in info.items()
            }
            fields["subagentInfo"] = Raw(msgspec.json.encode(changed))
    if "recency" in fields:
        fields["recency"] = Raw(msgspec.json.encode(int(time.time() * 1000)))


def _replace_id(fields: dict[str, Raw], name: str, new_ids: Mapping[str, str]) -> None:
    if name in fields:
        value = msgspec.json.decode(bytes(fields[name]))
        if isinstance(value, str) and value in new_ids:
            fields[name] = Raw(msgspec.json.encode(new_ids[value]))


def _copy_in_workspaces(
    edits: StoreEdits, old_id: str, new_ids: Mapping[str, str], workspace: WorkspaceTarget, mark: Raw
) -> None:
    """Copy the entry of a session in the list of a workspace to the target's list."""
    user_data, new_id = edits.user_data, new_ids[old_id]
    for file in user_data.databases():
        lists = user_data.database_lists(file)
        if old_id in lists.entries:
            found = user_data.database(file.path).read(lambda db: inline_entry(db, old_id))
            raw = found[0] if found else lists.entries[old_id].raw
            try:
                fields = decode(raw, dict[str, Raw])
            except UndecodableError:
                continue
            _rename(fields, new_ids)
            fields["copiedFrom"] = mark
            list_edits.add_workspace_entry(edits, workspace.database, new_id, msgspec.json.encode(fields))
            return
        if any(tab.id == old_id for tab in lists.tabs):
            tab = list_edits.read_tab(edits, file.path, old_id)
            if tab is not None:
                fields = decode(tab, dict[str, Raw])
                for name in ("tabId", "id"):
                    if name in fields:
                        fields[name] = Raw(msgspec.json.encode(new_id))
                fields["copiedFrom"] = _tab_mark(old_id, fields)
                list_edits.add_tab(edits, workspace.database, new_id, msgspec.json.encode(fields))
                return
