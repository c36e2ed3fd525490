"""Plan to move, copy and restore the sessions of Cursor, as the transfer package uses it.

In a copy, bubbles keep their ids: their keys contain the id of the session. The record of the copy names the
original, so that its messages are not counted again.
"""

import platform
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection
from uuid import uuid4

import msgspec
from msgspec import Raw

from backscroll.errors import ChangeConflictError, DataNotFoundError, SessionNotFoundError, TransferError
from backscroll.model.change import ChangePlan
from backscroll.model.transfer import ArchivedSession, BlockingProcess, SessionPlan, StoredSession
from backscroll.model.workspace import PathMaps
from backscroll.readers.processes import find_processes, may_use_folder, running_name
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database import keys
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    as_list,
    as_map,
    as_text,
    decode,
    decode_each,
)
from backscroll.sources.cursor.database.records import Composer
from backscroll.sources.cursor.database.session_lists import inline_entry
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing import list_edits, restore
from backscroll.sources.cursor.writing.folders import RecordPaths, WorkspaceTarget, find_or_create
from backscroll.sources.cursor.writing.store_edits import StoreEdits, check_composer, check_store

_PROGRAMS = ("Cursor", "Cursor Nightly", "Cursor Helper", "cursor.appimage")
_CHILD_LISTS = ("subComposerIds", "subagentComposerIds")

# Families of keys with the session's id after the first part. All are copied with a session.
_SESSION_FAMILIES = (
    "bubbleId",
    "checkpointId",
    "codeBlockDiff",
    "codeBlockPartialInlineDiffFates",
    "messageRequestContext",
    "ofsContent",
    "agentKv:bubbleCheckpoint",
)
_MAX_SUBAGENT_DEPTH = 8
_PID_FILE = "code.lock"
_SINGLETON_LINK = "SingletonLock"  # points to "<host>-<process id>"


def plan_restore(session: ArchivedSession, *, is_replacing: bool = False) -> SessionPlan:
    """Plan to restore a session and its subagents. Raises `DataNotFoundError` if no rows are archived."""
    if not session.rows:
        raise DataNotFoundError(f"The archive has no rows of {session.ref}.", session.root)
    user_data = UserData(session.root)
    try:
        units = [(restore.session_id_of(rows.key), Path(rows.path), rows.rows) for rows in session.rows]
        edits = restore.plan_restore(
            user_data, units, is_replacing=is_replacing, creates_store=session.creates_store
        )
        return SessionPlan(_plan(f"Restore {session.ref}", session.ref, edits), session.id)
    finally:
        user_data.close()


def restore_planner(root: Path, check: Callable[[SessionPlan], None]) -> restore.RestorePlanner:
    """Return a planner that restores several sessions: they are in the same lists."""
    return restore.RestorePlanner(UserData(root), check)


def plan_move(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to move a session and its subagents to another folder."""
    user_data = UserData(session.root)
    try:
        folder = None if keep_cwd else session.folder
        edits = move_edits(user_data, session.id, folder=folder, target=target)
        return SessionPlan(_plan(f"Move {session.ref} to {target}", session.ref, edits), session.id)
    finally:
        user_data.close()


def plan_copy(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to copy a session and its subagents to another folder, under new ids."""
    user_data = UserData(session.root)
    try:
        folder = None if keep_cwd else session.folder
        edits, new_ids = copy_edits(user_data, session.id, folder=folder, target=target)
        changes = _plan(f"Copy {session.ref} to {target}", session.ref, edits)
        return SessionPlan(changes, new_ids[0], tuple(new_ids[1:]))
    finally:
        user_data.close()


def _plan(what: str, ref: str, edits: StoreEdits) -> ChangePlan:
    rows = edits.rows()
    return ChangePlan(what=what, sessions=(ref,), files=edits.files(), rows=rows, tables=edits.tables(rows))


def blocking_processes(root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
    """Return the running editors: they overwrite the session lists when they exit."""
    pids = [pid for pid in find_processes(_PROGRAMS) if may_use_folder(pid, root)]
    found = [BlockingProcess(pid, _running_reason(pid)) for pid in pids]
    return found or _lock_holders(root)


def _lock_holders(root: Path) -> list[BlockingProcess]:
    """Return the editor that holds a lock file of a user-data folder. A crash leaves the files behind."""
    for pid in _local_pids(root):
        if _is_editor(pid, root):
            return [BlockingProcess(pid, _running_reason(pid))]
    host, _ = _singleton(root)
    if host and host != platform.node():
        return [
            BlockingProcess(
                None,
                f"Cursor is running on {host}. Close it there and try again."
                f" If it is not running, delete {root / _SINGLETON_LINK}.",
            )
        ]
    return []


def _running_reason(pid: int) -> str:
    """Return a sentence with the next step."""
    return f"Cursor is running (process {pid}). Close all its windows and try again."


def _is_editor(pid: int, root: Path) -> bool:
    """Return whether a process is the editor. After a crash, another one may have its process id."""
    name = running_name(pid)
    if name is None or not may_use_folder(pid, root):
        return False
    return sys.platform == "linux" or "cursor" in name.casefold()


def _local_pids(root: Path) -> list[int]:
    pids = []
    with suppress(OSError, ValueError):
        pids.append(int((root / _PID_FILE).read_text().strip()))
    host, pid = _singleton(root)
    if pid is not None and host == platform.node():
        pids.append(pid)
    return pids


def _singleton(root: Path) -> tuple[str, int | None]:
    with suppress(OSError, ValueError):
        host, _, pid = str((root / _SINGLETON_LINK).readlink()).rpartition("-")
        return host, int(pid)
    return "", None


# Move


def move_edits(user_data: UserData, session_id: str, *, folder: str | None, target: Path) -> StoreEdits:
    """Return the edits that move a session and its subagents to a local folder.

    ``folder`` is the current folder of the session, if it is known: paths below it are mapped.
    """
    edits = StoreEdits(user_data)
    _check_generation(user_data, session_id)
    check_store(user_data, edits)
    _check_tab(user_data, session_id)
    _check_listed(user_data, session_id)
    workspace = find_or_create(edits, target)
    paths = RecordPaths(PathMaps([(folder, str(target))])) if folder else None
    for moved_id in (session_id, *descendants(user_data, session_id)):
        _move(edits, moved_id, workspace, paths, target.name)
    list_edits.bump_version(edits)
    return edits


def _move(
    edits: StoreEdits, session_id: str, workspace: WorkspaceTarget, paths: RecordPaths | None, name: str
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


def _edit_rows(edits: StoreEdits, session_id: str, identifier: Raw | None, paths: RecordPaths | None) -> None:
    """Change the workspace and the paths in the rows of a session."""
    database = edits.user_data.global_path
    for key in _session_keys(edits.user_data, session_id):
        value = edits.value(database, key)
        if value is None:
            continue
        if key == _composer_key(session_id):
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


# Copy, under a new id


def copy_edits(
    user_data: UserData, session_id: str, *, folder: str | None, target: Path
) -> tuple[StoreEdits, list[str]]:
    """Return the edits that copy a session and its subagents to a local folder.

    The new ids follow, that of the session first.
    """
    edits = StoreEdits(user_data)
    _check_generation(user_data, session_id)
    check_store(user_data, edits)
    _check_tab(user_data, session_id)
    _check_listed(user_data, session_id)
    workspace = find_or_create(edits, target)
    paths = RecordPaths(PathMaps([(folder, str(target))])) if folder else None
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
    paths: RecordPaths | None,
    name: str,
    mark: Raw,
) -> None:
    user_data, database, new_id = edits.user_data, edits.user_data.global_path, new_ids[old_id]
    head = _global_entry(edits, old_id)
    is_global = head is not None
    for key in _session_keys(user_data, old_id):
        value = edits.value(database, key)
        if value is None:
            continue
        new_key = key.replace(old_id, new_id, 1)
        if key == _composer_key(old_id):
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
        label = "session" if key == _composer_key(old_id) else "message"
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


def _global_entry(edits: StoreEdits, session_id: str) -> dict[str, Raw] | None:
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


# Rows and subagents of a session


def _check_generation(user_data: UserData, session_id: str) -> None:
    """Raise `TransferError` for a chat of 2024 that a newer Cursor does not show.

    Such a chat is in the list of a workspace. Cursor 3.0 and newer read the list of the global database only.
    """
    has_store = locations.is_file(user_data.global_path)
    if not has_store or user_data.global_list().source != "none":
        lists = [user_data.database_lists(file) for file in user_data.databases()]
        is_chat = any(tab.id == session_id for one in lists for tab in one.tabs)
        if is_chat or not has_store:
            raise restore.old_chat_error(session_id, "moved or copied")


def _check_listed(user_data: UserData, session_id: str) -> None:
    """Raise `TransferError` if Cursor does not show a session: it has no record, or is in no list.

    Raises `SessionNotFoundError` if the store does not contain it.
    """
    lists = [user_data.database_lists(file) for file in user_data.databases()]
    is_listed = session_id in user_data.global_list().entries or any(
        session_id in one.entries or any(tab.id == session_id for tab in one.tabs) for one in lists
    )
    row_keys = _session_keys(user_data, session_id)
    has_record = _composer_key(session_id) in row_keys
    # Since Cursor 3.0, the record of a new session names its workspace before it is in a list.
    if is_listed or (has_record and user_data.global_list().source != "none"):
        return
    if not row_keys:
        raise SessionNotFoundError(f"{user_data.root} does not contain the session {session_id}.", session_id)
    reason = "is in none of its lists" if has_record else "has messages, but no record"
    raise TransferError(
        f"Cursor does not show the session {session_id}: it {reason}. It cannot be moved or copied.",
        session_id,
        "unlisted",
        hint=f"Run 'backscroll handoff {session_id}' to continue its work in a new session.",
    )


def _check_tab(user_data: UserData, session_id: str) -> None:
    """Raise `ChangeConflictError` if several chat panels have a conversation with this id."""
    databases: dict[str, list[Path]] = {}
    prefixed = {session_id}
    for file in user_data.databases():
        for tab in user_data.database_lists(file).tabs:
            databases.setdefault(tab.id, []).append(file.path)
            if session_id == f"{file.storage_id}-{tab.id}":  # the reader's name for one of several
                prefixed.add(tab.id)
    for tab_id in prefixed:
        if len(found := databases.get(tab_id, [])) > 1:
            raise ChangeConflictError(
                f"Several workspaces have a conversation with the id {tab_id}."
                " It cannot be moved or copied, because Cursor would confuse them.",
                found[0],
            )


def descendants(user_data: UserData, session_id: str) -> list[str]:
    """Return the subagents of a session, and theirs."""
    children: dict[str, set[str]] = {}
    for entry_id, entry in user_data.global_list().entries.items():
        parent = as_text(as_map(entry.header.subagent_info).get("parentComposerId"))
        if parent:
            children.setdefault(parent, set()).add(entry_id)
    found: dict[str, None] = {}
    level = [session_id]
    for _ in range(_MAX_SUBAGENT_DEPTH):
        level = [
            child
            for parent in level
            for child in sorted(children.get(parent, set()) | _listed_children(user_data, parent))
            if child != session_id and child not in found
        ]
        found |= dict.fromkeys(level)
    return list(found)


def _listed_children(user_data: UserData, session_id: str) -> set[str]:
    value = user_data.row_loader(user_data.global_path).value_by_key(_composer_key(session_id))
    if not isinstance(value, bytes):
        return set()
    try:
        composer = decode(value, Composer)
    except UndecodableError:
        return set()
    ids = [*as_list(composer.sub_composer_ids), *as_list(composer.subagent_composer_ids)]
    return {as_text(one) for one in ids} - {""}


def _session_keys(user_data: UserData, session_id: str) -> list[str]:
    """Return the keys of all rows of a session in the global database, its record last."""
    return user_data.database(user_data.global_path).read(lambda db: _read_session_keys(db, session_id))


def _read_session_keys(db: Connection, session_id: str) -> list[str]:
    if not keys.has_table(db, "cursorDiskKV"):
        return []
    found: list[str] = []
    for family in _SESSION_FAMILIES:
        prefix = f"{family}:{session_id}:"
        rows = keys.rows_with_prefix(db, prefix.encode("utf-8", "replace"))
        found += [prefix + name.decode() for name, _ in rows]
    singles = (f"agentKv:checkpoint:{session_id}", _composer_key(session_id))
    return found + [key for key in singles if keys.rowid_of(db, key)]


def _composer_key(session_id: str) -> str:
    return f"composerData:{session_id}"
