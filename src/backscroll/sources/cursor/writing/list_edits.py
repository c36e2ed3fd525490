"""Entries in the session lists of all generations.

Cursor 3.12 and newer list sessions in the table ``composerHeaders``, 3.0 to 3.11 in a JSON value of the
global database, older versions in a JSON value of each workspace database. A store that was upgraded has
several of them. All that exist are changed.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from backscroll.model.change import Value
from backscroll.sources.cursor.database.decode import UndecodableError, as_int, as_map, as_text, decode
from backscroll.sources.cursor.database.session_lists import (
    CHAT_KEY,
    COMPOSERS_KEY,
    HEADERS_KEY,
    PROJECT_MEMBERS_KEY,
    PROJECTS_KEY,
    VERSION_KEY,
)
from backscroll.sources.cursor.writing.store_edits import StoreEdits

_ID_FIELDS = ("composerId",)
_TAB_ID_FIELDS = ("tabId", "id")
_TIME_COLUMNS = ("createdAt", "lastUpdatedAt", "recency", "checkpointAt")  # of the header table
Edit = Callable[[dict[str, Raw]], None]


def edit_global_entries(
    edits: StoreEdits, session_id: str, edit: Edit, columns: dict[str, Value] | None = None
) -> bool:
    """Change the entries of a session in the lists of the global database. Return whether there are any."""
    database = edits.user_data.global_path
    found = False
    header = edits.header(session_id)
    if header is not None:
        fields = _fields(header.get("value"))
        edit(fields)
        known = set(edits.header_columns())
        changed = {name: value for name, value in (columns or {}).items() if name in known}
        edits.put_header(session_id, {**changed, "value": _like(header.get("value"), fields)})
        found = True
    value = edits.value(database, HEADERS_KEY, "ItemTable")
    entries = _List(value)
    position = entries.find(session_id)
    if position is not None:
        fields = decode(entries.items[position], dict[str, Raw])
        edit(fields)
        entries.items[position] = Raw(msgspec.json.encode(fields))
        edits.put(database, HEADERS_KEY, entries.encoded(), table="ItemTable", label="session list")
        found = True
    return found


def add_global_entry(
    edits: StoreEdits,
    session_id: str,
    head: dict[str, Raw],
    workspace_id: str,
    restored: Mapping[str, Value] | None = None,
) -> bool:
    """Add a session to the list of the global database. Return False if the store has no such list.

    ``restored`` are the columns of its row before Cursor deleted it, as far as they are known: they have its
    times and its place in the list. Without it, the session is listed as new.
    """
    database = edits.user_data.global_path
    columns = edits.header_columns()
    if columns:
        row = _header_row(columns, session_id, head, workspace_id, restored)
        edits.put_header(session_id, row)
        return True
    value = edits.value(database, HEADERS_KEY, "ItemTable")
    if value is None:
        return False
    entries = _List(value)
    if entries.find(session_id) is None:
        entries.items.insert(0, Raw(msgspec.json.encode(head)))
        edits.put(database, HEADERS_KEY, entries.encoded(), table="ItemTable", label="session list")
    return True


def remove_workspace_entry(edits: StoreEdits, database: Path, session_id: str) -> bytes | None:
    """Remove a session from the list of a workspace. Return its entry; None if it has none."""
    value = edits.value(database, COMPOSERS_KEY, "ItemTable")
    entries = _List(value)
    entries.drop_selection(session_id)
    position = entries.find(session_id)
    removed = bytes(entries.items.pop(position)) if position is not None else None
    if value is not None:
        edits.put(database, COMPOSERS_KEY, entries.encoded(), table="ItemTable", label="workspace list")
    return removed


def add_workspace_entry(edits: StoreEdits, database: Path, session_id: str, entry: bytes) -> None:
    """Add a session at the start of the list of a workspace."""
    entries = _List(edits.value(database, COMPOSERS_KEY, "ItemTable"))
    if entries.find(session_id) is None:
        entries.items.insert(0, Raw(entry))
        edits.put(database, COMPOSERS_KEY, entries.encoded(), table="ItemTable", label="workspace list")


def remove_tab(edits: StoreEdits, database: Path, tab_id: str) -> bytes | None:
    """Remove a conversation from the chat panel. Return it; None if it is not there."""
    tabs = _List(edits.value(database, CHAT_KEY, "ItemTable"), "tabs", _TAB_ID_FIELDS)
    position = tabs.find(tab_id)
    if position is None:
        return None
    removed = bytes(tabs.items.pop(position))
    edits.put(database, CHAT_KEY, tabs.encoded(), table="ItemTable", label="chat panel")
    return removed


def read_tab(edits: StoreEdits, database: Path, tab_id: str) -> bytes | None:
    """Return a conversation of the chat panel; None if it is not there."""
    tabs = _List(edits.value(database, CHAT_KEY, "ItemTable"), "tabs", _TAB_ID_FIELDS)
    position = tabs.find(tab_id)
    return bytes(tabs.items[position]) if position is not None else None


def add_tab(edits: StoreEdits, database: Path, tab_id: str, tab: bytes) -> None:
    """Add a conversation to the chat panel of a workspace."""
    tabs = _List(edits.value(database, CHAT_KEY, "ItemTable"), "tabs", _TAB_ID_FIELDS)
    if tabs.find(tab_id) is None:
        tabs.items.append(Raw(tab))
        edits.put(database, CHAT_KEY, tabs.encoded(), table="ItemTable", label="chat panel")


def set_project(edits: StoreEdits, session_id: str, identifier: dict[str, Any], name: str) -> None:
    """Assign a session to the sidebar's project of a workspace. Nothing if the store has no projects."""
    database = edits.user_data.global_path
    members_value = edits.value(database, PROJECT_MEMBERS_KEY, "ItemTable")
    if members_value is None:
        return
    members = _fields(members_value)
    projects_value = edits.value(database, PROJECTS_KEY, "ItemTable") or b"[]"
    try:
        projects = decode(projects_value, list[Raw])
        project_id = next(
            (as_text(project.get("id")) for project in map(_map, projects) if _is_of(project, identifier)),
            None,
        )
    except UndecodableError:
        return
    if project_id is None:
        now = int(time.time() * 1000)
        project_id = f"local-{identifier['id']}"
        project = {
            "id": project_id,
            "name": name,
            "workspace": identifier,
            "createdAt": now,
            "lastUpdatedAt": now,
            "isArchived": False,
        }
        projects.append(Raw(msgspec.json.encode(project)))
        edits.put(database, PROJECTS_KEY, msgspec.json.encode(projects), table="ItemTable", label="projects")
    members[session_id] = Raw(msgspec.json.encode(project_id))
    edits.put(
        database,
        PROJECT_MEMBERS_KEY,
        msgspec.json.encode(members),
        table="ItemTable",
        label="projects",
    )


def bump_version(edits: StoreEdits) -> None:
    """Mark the session lists as changed, as Cursor does."""
    database = edits.user_data.global_path
    value = edits.value(database, VERSION_KEY, "ItemTable")
    if value is not None:
        version = f"{int(time.time() * 1000)}-1"
        text = f'"{version}"' if value.startswith(b'"') else version
        edits.put(database, VERSION_KEY, text.encode(), table="ItemTable", label="list version")


class _List:
    """A JSON list of sessions, bare or in an object. All other fields are kept as they are."""

    def __init__(
        self, value: bytes | None, field: str = "allComposers", id_fields: tuple[str, ...] = _ID_FIELDS
    ) -> None:
        self._field = field
        self._id_fields = id_fields
        self._wrapper: dict[str, Raw] | None = {}
        self.items: list[Raw] = []
        if value is None:
            return
        if value.lstrip().startswith(b"["):
            self._wrapper = None
            self.items = decode(value, list[Raw])
            return
        self._wrapper = decode(value, dict[str, Raw])
        if field == "tabs" and "tabs" not in self._wrapper and "chatSessions" in self._wrapper:
            self._field = "chatSessions"
        self.items = decode(self._wrapper.get(self._field, Raw(b"[]")), list[Raw])

    def find(self, session_id: str) -> int | None:
        mark = f'"{session_id}"'.encode()
        for position, raw in enumerate(self.items):
            if mark in bytes(raw) and session_id in (
                as_text(_map(raw).get(name)) for name in self._id_fields
            ):
                return position
        return None

    def drop_selection(self, session_id: str) -> None:
        """Remove a session from the lists of open and focused ones."""
        if self._wrapper is None:
            return
        for name in ("selectedComposerIds", "lastFocusedComposerIds"):
            if name in self._wrapper:
                ids = decode(self._wrapper[name], list[Any])
                if session_id in ids:
                    kept = [one for one in ids if one != session_id]
                    self._wrapper[name] = Raw(msgspec.json.encode(kept))

    def encoded(self) -> bytes:
        if self._wrapper is None:
            return msgspec.json.encode(self.items)
        return msgspec.json.encode({**self._wrapper, self._field: self.items})


def _header_row(
    columns: list[str],
    session_id: str,
    head: dict[str, Raw],
    workspace_id: str,
    restored: Mapping[str, Value] | None,
) -> dict[str, Value]:
    """Return a row of the header table for a list entry."""
    fields = _map(Raw(msgspec.json.encode(head)))
    updated = as_int(fields.get("lastUpdatedAt")) or as_int(fields.get("createdAt"))
    values: dict[str, Value] = {
        "composerId": session_id,
        "workspaceId": workspace_id,
        "createdAt": as_int(fields.get("createdAt")),
        "lastUpdatedAt": updated,
        "isArchived": int(bool(fields.get("isArchived"))),
        "isSubagent": int(bool(as_map(fields.get("subagentInfo")))),
        "recency": int(time.time() * 1000) if restored is None else updated,
        "checkpointAt": None,
        "subagentTypeName": as_text(as_map(fields.get("subagentInfo")).get("subagentTypeName")) or None,
        "value": msgspec.json.encode(head).decode(),
    }
    stored = {name: restored[name] for name in _TIME_COLUMNS if restored and restored.get(name) is not None}
    values |= stored
    return {name: value for name, value in values.items() if name in columns}


def _is_of(project: dict[str, Any], identifier: dict[str, Any]) -> bool:
    return as_text(as_map(project.get("workspace")).get("id")) == as_text(identifier["id"])


def _fields(value: Value) -> dict[str, Raw]:
    data = value.encode() if isinstance(value, str) else value
    return decode(data, dict[str, Raw]) if isinstance(data, bytes) and data else {}


def _like(value: Value, fields: dict[str, Raw]) -> Value:
    """Encode fields with the storage class of a value."""
    data = msgspec.json.encode(fields)
    return data if isinstance(value, bytes) else data.decode()


def _map(raw: Raw) -> dict[str, Any]:
    try:
        return as_map(decode(raw, object))
    except UndecodableError:
        return {}
