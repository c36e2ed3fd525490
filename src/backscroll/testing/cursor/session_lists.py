"""Where Cursor lists its sessions: a list per workspace, then one list for all, then a table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.rows import head
from backscroll.testing.cursor.workspaces import Place
from backscroll.testing.database import Cell

__all__ = [
    "HEADER_COLUMNS",
    "KEY_VALUE_SCHEMA",
    "Entry",
    "gates",
    "global_list",
    "header_columns",
    "header_row",
    "header_schema",
    "pane_rows",
    "workspace_list",
]

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

_PANE = "workbench.panel.composerChatViewPane"


@dataclass(frozen=True)
class Entry:
    """A session as the index knows it."""

    id: str
    generation: int
    place: Place | None
    name: str | None
    at: int
    until: int
    fields: Mapping[str, Any] = field(default_factory=dict)  # laid over the head as they are
    inline: Mapping[str, Any] | None = None  # the whole session, which the first composers kept in the list

    def head(self, generation: int) -> dict[str, Any]:
        """The entry as an index of this generation writes it."""
        plain = head(
            self.id,
            name=self.name,
            at=self.at,
            until=self.until,
            generation=generation,
            place=self.place,
        )
        return plain | dict(self.fields)


def header_columns(generation: int, *, is_upgraded: bool) -> list[str]:
    """The table's columns in their order: nine, then ten, the new one last where the table was upgraded."""
    columns = list(HEADER_COLUMNS)
    if generation >= 5:
        columns.insert(len(columns) if is_upgraded else -1, "subagentTypeName")
    return columns


def header_schema(columns: Iterable[str]) -> str:
    """The table of sessions and its index."""
    kinds = ", ".join(f"{name} {HEADER_COLUMNS.get(name, 'TEXT')}" for name in columns)
    return (
        f"create table if not exists composerHeaders ({kinds});\n"
        "create index if not exists idx_composerHeaders_0"
        " ON composerHeaders(workspaceId, isSubagent, isArchived, recency);\n"
    )


def header_row(entry: Entry, generation: int) -> dict[str, Cell]:
    """A row of the table; which of its values are written depends on the columns there are."""
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
    """The one list of all sessions, newest first."""
    newest = sorted(entries, key=lambda entry: entry.until, reverse=True)
    return dumps({"allComposers": [entry.head(generation) for entry in newest]})


def gates(version: int) -> list[tuple[str, str]]:
    """What says in ``ItemTable`` that the table is in use; the version is bare text, not JSON."""
    return [
        ("composer.composerHeaders.tableGateEnabled", "true"),
        ("composer.composerHeaders.version", f"{version}-1"),
    ]


def workspace_list(entries: Iterable[Entry], *, generation: int, is_bare: bool) -> str:
    """A workspace's own list: complete before version 3, only the open tabs since."""
    everything = list(entries)
    listed = [
        entry.head(entry.generation) | dict(entry.inline or {})
        for entry in everything
        if entry.generation <= 2
    ]
    if is_bare:
        return dumps(listed)
    ids = [entry.id for entry in everything]
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
    """The state of the chat panes, which names sessions that no list may name any more."""
    views = {
        f"workbench.panel.aichat.view.{entry.id}": {"collapsed": False, "isHidden": False, "size": 600}
        for entry in entries
    }
    if not views:
        return []
    return [
        (f"{_PANE}.{pane}", dumps(views)),
        (f"{_PANE}.{pane}.hidden", dumps([{"id": name, "isHidden": False} for name in views])),
    ]
