"""Cursor user-data folder with its global and workspace databases."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Literal
from uuid import UUID

from backscroll.testing import database
from backscroll.testing.cursor import session_lists
from backscroll.testing.cursor.bubbles import (
    bubble,
    bubble_header,
    dumps,
    inline_bubble,
    tab_bubble,
    tool_data,
)
from backscroll.testing.cursor.graph import Graph, build_graph
from backscroll.testing.cursor.messages import Message
from backscroll.testing.cursor.rows import COMPOSER_VERSIONS, composer_data, secrets, sidecars
from backscroll.testing.cursor.workspaces import Workspace, local_folder
from backscroll.testing.database import Cell, Journal, RowLocation

# Default start time of a session by generation, in milliseconds.
START_TIMES: Mapping[int, int] = {
    0: 1717000000000,
    1: 1736000000000,
    2: 1754000000000,
    3: 1777000000000,
    4: 1783500000000,
    5: 1790000000000,
}
CHAT_DATA = "workbench.panel.aichat.view.aichat.chatdata"
_MESSAGE_INTERVAL_MS = 10_000


@dataclass(frozen=True)
class Composer:
    """A session that was added to a home."""

    id: str
    generation: int
    workspace: Workspace | None
    messages: tuple[Message, ...]  # with their ids, times and call ids
    data: Mapping[str, Any]

    @property
    def key(self) -> str:
        return f"composerData:{self.id}"

    def bubble_key(self, position: int) -> str:
        return f"bubbleId:{self.id}:{self.messages[position].id}"


@dataclass
class _WorkspaceData:
    """Unwritten rows and chat tabs of one workspace."""

    workspace: Workspace
    is_bare_list: bool = False
    rows: list[tuple[str | None, Cell]] = field(default_factory=list)
    tabs: list[dict[str, Any]] = field(default_factory=list)
    written: list[tuple[str | None, Cell]] = field(default_factory=list)


class Home:
    """User-data folder in the format of one generation. Sessions can have an earlier generation.

    `write` writes all sessions and rows that were added since the last `write`.
    """

    def __init__(
        self,
        root: Path,
        *,
        generation: int = 5,
        seed: int = 0,
        journal: Journal = "wal",
        rows_in: RowLocation = "main",
        shm: bool = False,
        storage: Literal["text", "blob"] = "text",
        is_upgraded: bool = False,
    ) -> None:
        self.root = root
        self.generation = generation
        self.seed = seed
        self._journal = journal
        self._rows_in = rows_in
        self._shm = shm
        self._storage = storage
        self._columns = session_lists.header_columns(generation, is_upgraded=is_upgraded)
        self._disk: list[tuple[str | None, Cell]] = []
        self._items: list[tuple[str | None, Cell]] = []
        self._entries: dict[str, session_lists.Entry] = {}
        self._headers: dict[str, dict[str, Cell]] = {}
        self._workspaces: dict[str, _WorkspaceData] = {}
        self._session_count = 0
        self._writes = 0

    @property
    def database(self) -> Path:
        """The global database."""
        return self.root / "User/globalStorage/state.vscdb"

    def workspace_database(self, workspace: Workspace) -> Path:
        return self.root / "User/workspaceStorage" / workspace.id / "state.vscdb"

    def add_workspace(self, workspace: Workspace, *, is_bare_list: bool = False) -> Workspace:
        """Add a workspace. The first composers wrote its session list as an array (``is_bare_list``)."""
        self._workspaces.setdefault(workspace.id, _WorkspaceData(workspace)).is_bare_list = is_bare_list
        return workspace

    def put(self, key: str | None, value: Cell) -> None:
        """Add a row of the global ``cursorDiskKV``."""
        self._disk.append((key, value))

    def put_item(self, key: str | None, value: Cell, *, workspace: Workspace | None = None) -> None:
        """Add a row of the global ``ItemTable`` or of a workspace's."""
        if workspace is None:
            self._items.append((key, value))
        else:
            self._workspace_data(workspace).rows.append((key, value))

    def put_secrets(self) -> None:
        """Add rows that contain `SECRET`, which no output may contain."""
        self._items += secrets()

    def put_graph(self, graph: Graph) -> None:
        """Add the blobs of a conversation graph."""
        self._disk += [(f"agentKv:blob:{id}", data) for id, data in graph.blobs.items()]

    def list_head(self, entry: session_lists.Entry) -> None:
        """Add an index entry for a session. The session need not exist."""
        if entry.workspace is not None:
            self._workspace_data(entry.workspace)
        self._entries[entry.id] = entry

    def composer(
        self,
        messages: Sequence[Message] = (),
        *,
        generation: int | None = None,
        workspace: Workspace | None = None,
        id: str | None = None,
        name: str | None = "Fix basket totals",
        at: int | None = None,
        version: int | None = None,
        bubble_version: int | None = None,
        is_listed: bool = True,
        has_data: bool = True,
        has_bubbles: bool = True,
        has_graph: bool | None = None,
        has_sidecars: bool = False,
        is_in_workspace: bool = False,
        is_map_text: bool = False,
        head: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Composer:
        """Add a session. ``head`` and ``data`` override fields of its index entry and its composer data.

        ``is_in_workspace`` stores an inline session in the session list of its workspace,
        as the first composers did. ``is_map_text`` stores its tool calls as JSON text.
        """
        generation = self.generation if generation is None else generation
        if generation not in COMPOSER_VERSIONS:
            raise ValueError(f"Generation {generation} has no composers. Use `tab` for chat tabs.")
        rng = self._new_rng()
        id = id or new_id(rng)
        workspace = workspace or self.add_workspace(local_folder("/home/dev/shop"))
        self._workspace_data(workspace)
        start = START_TIMES[generation] + 3_600_000 * self._session_count if at is None else at
        timed_messages = assign_ids(messages, rng, start)
        until = max((message.at or start for message in timed_messages), default=start)
        folder = workspace.path or "/home/dev"
        state = "~"
        if has_graph if has_graph is not None else generation >= 3 and timed_messages:
            graph = build_graph(
                timed_messages, [message.at or start for message in timed_messages], folder=folder
            )
            self.put_graph(graph)
            self.put(f"agentKv:checkpoint:{id}", graph.root_id)
            prompts = [message for message in timed_messages if message.role == "user"]
            for message, root in zip(prompts, graph.older_roots, strict=False):
                self.put(f"agentKv:bubbleCheckpoint:{id}:{message.id}", root)
            state = graph.state
        record = composer_data(
            id,
            name=name,
            at=start,
            until=until,
            generation=generation,
            version=COMPOSER_VERSIONS[generation][-1] if version is None else version,
            workspace=workspace,
            state=state,
            **(
                _inline(timed_messages, is_map_text)
                if generation == 1
                else {"headers": _headers(timed_messages, generation)}
            ),
        ) | dict(data or {})
        if generation >= 2 and has_bubbles:
            row_version = bubble_version or (3 if generation >= 3 else 2)
            for message in timed_messages:
                if message.is_stored:
                    self._put_bubble(id, message, generation, row_version)
        if has_sidecars:
            self._disk += sidecars(
                id, [str(message.id) for message in timed_messages], at=start, folder=folder
            )
        if has_data and not is_in_workspace:
            self.put(f"composerData:{id}", self._encode(record))
        if is_listed:
            inline = record if is_in_workspace else None
            self.list_head(
                session_lists.Entry(id, generation, workspace, name, start, until, dict(head or {}), inline)
            )
        return Composer(id, generation, workspace, timed_messages, record)

    def tab(
        self,
        messages: Sequence[Message],
        *,
        workspace: Workspace | None = None,
        id: str | None = None,
        name: str = "Regex help",
        at: int | None = None,
        variant: bool = False,
    ) -> str:
        """Add a tab of the chat panel. ``variant`` uses its alternative field names."""
        rng = self._new_rng()
        workspace = workspace or self.add_workspace(local_folder("/home/dev/shop"))
        id = id or new_id(rng)
        start = START_TIMES[0] if at is None else at
        bubbles = [tab_bubble(message, id=str(message.id)) for message in assign_ids(messages, rng, start)]
        names = (
            ("id", "title", "timestamp", "messages")
            if variant
            else ("tabId", "chatTitle", "lastSendTime", "bubbles")
        )
        self._workspace_data(workspace).tabs.append(dict(zip(names, (id, name, start, bubbles), strict=True)))
        return id

    def write(self) -> Path:
        """Write everything that was added since the last call. Return the root."""
        self._writes += 1
        for data in self._workspaces.values():
            self._write_workspace(data)
        mtime = self._mtime()
        disk, items = list(self._disk), list(self._items)
        schema = session_lists.KEY_VALUE_SCHEMA
        headers: list[list[Cell]] = []
        if self.generation >= 3:
            entries = list(self._entries.values())
            # Later generations no longer update the global list.
            listed = [entry for entry in entries if self.generation == 3 or entry.generation <= 3]
            if listed:
                items.append(("composer.composerHeaders", session_lists.global_list(listed, 3)))
        if self.generation >= 4:
            schema += session_lists.header_schema(self._columns)
            headers = self._changed_headers()
            disk.append(("composer.composerHeaders.migratedToTable", "true"))
            items += session_lists.table_flags(mtime)
        rows = [
            database.insert_statement("cursorDiskKV", ("key", "value"), disk),
            database.insert_statement("ItemTable", ("key", "value"), items),
        ]
        if headers:
            rows.append(database.insert_statement("composerHeaders", self._columns, headers))
        database.write(
            self.database,
            schema,
            rows,
            journal=self._journal,
            rows_in=self._rows_in,
            shm=self._shm,
            mtime=mtime,
        )
        self._disk.clear()
        self._items.clear()
        return self.root

    def write_backup(self) -> Path:
        """Copy the database as Cursor does for its backup. A reader must ignore the copy."""
        path = self.database.with_name("state.vscdb.backup")
        shutil.copyfile(self.database, path)
        return path

    def _changed_headers(self) -> list[list[Cell]]:
        out = []
        for entry in self._entries.values():
            row = session_lists.header_row(entry, self.generation)
            if self._headers.get(entry.id) != row:
                self._headers[entry.id] = row
                out.append([row[name] for name in self._columns])
        return out

    def _write_workspace(self, data: _WorkspaceData) -> None:
        path = self.workspace_database(data.workspace)
        entries = [entry for entry in self._entries.values() if entry.workspace == data.workspace]
        listed = session_lists.workspace_list(entries, generation=self.generation, is_bare=data.is_bare_list)
        rows = list(data.rows)
        if self.generation >= 1:
            rows.append(("composer.composerData", listed))
        rows += session_lists.pane_rows(
            (entry for entry in entries if entry.generation in (2, 3)), f"5a{data.workspace.id[:6]}-pane"
        )
        if data.tabs:
            rows.append((CHAT_DATA, dumps({"tabs": data.tabs, "selectedTabId": None})))
        if rows == data.written:
            return
        data.written = [row for row in rows if row not in data.rows]
        statement = database.insert_statement("ItemTable", ("key", "value"), rows)
        # Workspace databases use a rollback journal.
        database.write(
            path, session_lists.KEY_VALUE_SCHEMA, [statement], journal="delete", mtime=self._mtime()
        )
        if data.workspace.workspace_json is not None:
            path.with_name("workspace.json").write_text(data.workspace.workspace_json)
        data.rows.clear()

    def _put_bubble(self, id: str, message: Message, generation: int, version: int) -> None:
        record = bubble(
            message, id=str(message.id), at=message.at or 0, generation=generation, version=version
        )
        self.put(f"bubbleId:{id}:{message.id}", self._encode(record))

    def _encode(self, record: Mapping[str, Any]) -> Cell:
        text = dumps(record)
        return text if self._storage == "text" else text.encode()

    def _workspace_data(self, workspace: Workspace) -> _WorkspaceData:
        return self._workspaces.setdefault(workspace.id, _WorkspaceData(workspace))

    def _new_rng(self) -> Random:
        """Return a new generator for a session, so that it does not depend on other sessions."""
        self._session_count += 1
        return Random(f"{self.seed}/{self._session_count}")

    def _mtime(self) -> int:
        """Return a time after the last message that increases with every write."""
        last = max((entry.until for entry in self._entries.values()), default=START_TIMES[self.generation])
        return last + 1000 * self._writes


def new_id(rng: Random) -> str:
    """Return a random UUID."""
    return str(UUID(int=rng.getrandbits(128), version=4))


def assign_ids(messages: Sequence[Message], rng: Random, start: int) -> tuple[Message, ...]:
    """Assign an id, a time and a call id to every message without one."""
    out = []
    for index, message in enumerate(messages):
        call = message.tool
        if call is not None and call.call_id is None:
            call = replace(call, call_id=f"call_{rng.getrandbits(64):016x}")
        at = start + index * _MESSAGE_INTERVAL_MS if message.at is None else message.at
        out.append(replace(message, id=message.id or new_id(rng), at=at, tool=call))
    return tuple(out)


def _headers(messages: Sequence[Message], generation: int) -> list[dict[str, Any]]:
    return [
        bubble_header(message, id=str(message.id), at=message.at or 0, generation=generation)
        for message in messages
        if message.is_listed
    ]


def _inline(messages: Sequence[Message], is_map_text: bool) -> dict[str, Any]:
    calls = {
        str(message.id): tool_data(message.tool, at=message.at or 0)
        for message in messages
        if message.tool is not None
    }
    return {
        "conversation": [
            inline_bubble(
                message,
                id=str(message.id),
                at=message.at or 0,
                clock=5000 + index if index % 3 == 2 else None,
            )
            for index, message in enumerate(messages)
        ],
        "bubble_map": dumps(calls) if is_map_text else calls,
    }
