"""Session lists of Cursor: first one list per workspace, then a global list, then a table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.rows import head
from backscroll.testing.cursor.workspaces import Workspace
from backscroll.testing.database import Cell

KEY_VALUE_SCHEMA = """
create table if not exists ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
create table if not exists cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
pragma user_version = 1;
"""

HEADER_COLUMNS: Mapping[str, str] = {
    "composerId": "TEXT PRIMARY KEY",
    "workspaceId": "TEXT",
    "createdAt": "INTEGER",
    "lastUpdatedAt": "INTEGER",
    "isArchived": "INTEGER",
    "isSubagent": "INTEGER",
    "recency": "INTEGER",
    "checkpointAt": "INTEGER",
    "value": "TEXT",
}

_PANE_KEY = "workbench.panel.composerChatViewPane"


@dataclass(frozen=True)
class Entry:
    """Index entry of a session."""

    id: str
    generation: int
    workspace: Workspace | None
    name: str | None
    at: int
    until: int
    fields: Mapping[str, Any] = field(default_factory=dict)  # override the fields of the entry
    inline: Mapping[str, Any] | None = None  # the whole session, which the first composers stored in the list

    def head(self, generation: int) -> dict[str, Any]:
        """Return the entry in the format of a generation."""
        entry = head(
            self.id,
            name=self.name,
            at=self.at,
            until=self.until,
            generation=generation,
            workspace=self.workspace,
        )
        return entry | dict(self.fields)


def header_columns(generation: int, *, is_upgraded: bool) -> list[str]:
    """Return the columns of the session table. An upgraded table has the newest column at the end."""
    columns = list(HEADER_COLUMNS)
    if generation >= 5:
        columns.insert(len(columns) if is_upgraded else -1, "subagentTypeName")
    return columns


def header_schema(columns: Iterable[str]) -> str:
    """Return the statements that create the session table and its index."""
    definitions = ", ".join(f"{name} {HEADER_COLUMNS.get(name, 'TEXT')}" for name in columns)
    return (
        f"create table if not exists composerHeaders ({definitions});\n"
        "create index if not exists idx_composerHeaders_0"
        " ON composerHeaders(workspaceId, isSubagent, isArchived, recency);\n"
    )


def header_row(entry: Entry, generation: int) -> dict[str, Cell]:
    """Return the values of a row, for all possible columns."""
    record = entry.head(generation)
    child = record.get("subagentInfo")
    return {
        "composerId": entry.id,
        "workspaceId": record.get("workspaceIdentifier", {}).get("id", "empty-window"),
        "createdAt": record.get("createdAt"),
        "lastUpdatedAt": record.get("lastUpdatedAt"),
        "isArchived": int(bool(record.get("isArchived"))),
        "isSubagent": int(bool(child)),
        "recency": record.get("lastUpdatedAt"),
        "checkpointAt": None,
        "subagentTypeName": child.get("subagentTypeName") if isinstance(child, dict) else None,
        "value": dumps(record),
    }


def global_list(entries: Iterable[Entry], generation: int) -> str:
    """Return the global session list, newest first."""
    newest = sorted(entries, key=lambda entry: entry.until, reverse=True)
    return dumps({"allComposers": [entry.head(generation) for entry in newest]})


def table_flags(version: int) -> list[tuple[str, str]]:
    """Return the rows of ``ItemTable`` that mark the table as current. The version is text, not JSON."""
    return [
        ("composer.composerHeaders.tableGateEnabled", "true"),
        ("composer.composerHeaders.version", f"{version}-1"),
    ]


def workspace_list(entries: Iterable[Entry], *, generation: int, is_bare: bool) -> str:
    """Return the session list of a workspace. Since generation 3 it contains only the open tabs."""
    all_entries = list(entries)
    listed = [
        entry.head(entry.generation) | dict(entry.inline or {})
        for entry in all_entries
        if entry.generation <= 2
    ]
    if is_bare:
        return dumps(listed)
    ids = [entry.id for entry in all_entries]
    record: dict[str, Any] = {
        "allComposers": listed,
        "hasMigratedComposerData": True,
        "hasMigratedMultipleComposers": True,
    }
    if generation >= 3:
        record |= {"selectedComposerIds": ids[-3:], "lastFocusedComposerIds": ids[-1:]}
    elif ids:
        record |= {"selectedComposerId": ids[-1], "hasMigratedChatData": True}
    return dumps(record)


def pane_rows(entries: Iterable[Entry], pane: str) -> list[tuple[str, str]]:
    """Return the state of the chat panes. It can contain sessions that are in no list."""
    views = {
        f"workbench.panel.aichat.view.{entry.id}": {"collapsed": False, "isHidden": False, "size": 600}
        for entry in entries
    }
    if not views:
        return []
    return [
        (f"{_PANE_KEY}.{pane}", dumps(views)),
        (f"{_PANE_KEY}.{pane}.hidden", dumps([{"id": name, "isHidden": False} for name in views])),
    ]
