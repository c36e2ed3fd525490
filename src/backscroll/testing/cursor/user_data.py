"""A Cursor user-data folder, filled session by session and written in one go."""

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
from backscroll.testing.cursor.workspaces import Place, local
from backscroll.testing.database import Cell, Journal, RowLocation

__all__ = ["STARTS", "Composer", "Home", "new_id", "settle"]

# When each generation was current: where a session starts that does not say when.
STARTS: Mapping[int, int] = {
    0: 1717000000000,
    1: 1736000000000,
    2: 1754000000000,
    3: 1777000000000,
    4: 1783500000000,
    5: 1790000000000,
}
CHAT_DATA = "workbench.panel.aichat.view.aichat.chatdata"
_STEP = 10_000


@dataclass(frozen=True)
class Composer:
    """What was written for one session, for a test to point at."""

    id: str
    generation: int
    place: Place | None
    messages: tuple[Message, ...]  # with the ids, times and call ids they were written with
    data: Mapping[str, Any]

    @property
    def key(self) -> str:
        return f"composerData:{self.id}"

    def bubble_key(self, position: int) -> str:
        return f"bubbleId:{self.id}:{self.messages[position].id}"


@dataclass
class _Desk:
    """One workspace's folder: rows not yet written, and the chat tabs."""

    place: Place
    is_bare_list: bool = False
    rows: list[tuple[str | None, Cell]] = field(default_factory=list)
    tabs: list[dict[str, Any]] = field(default_factory=list)
    written: list[tuple[str | None, Cell]] = field(default_factory=list)


class Home:
    """A user-data folder as Cursor of one generation leaves it, holding sessions of any earlier one.

    Nothing is on disk before `write`. Sessions and rows added later are written
    by the next `write`, into the same databases.
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
        self._desks: dict[str, _Desk] = {}
        self._drawn = 0
        self._writes = 0

    @property
    def database(self) -> Path:
        """The global database."""
        return self.root / "User/globalStorage/state.vscdb"

    def workspace_database(self, place: Place) -> Path:
        return self.root / "User/workspaceStorage" / place.id / "state.vscdb"

    def workspace(self, place: Place, *, is_bare_list: bool = False) -> Place:
        """Make a workspace known. A bare list is how the first composers wrote their index."""
        self._desks.setdefault(place.id, _Desk(place)).is_bare_list = is_bare_list
        return place

    def put(self, key: str | None, value: Cell) -> None:
        """A row of the global ``cursorDiskKV``."""
        self._disk.append((key, value))

    def put_item(self, key: str | None, value: Cell, *, place: Place | None = None) -> None:
        """A row of ``ItemTable``: the global one, or a workspace's."""
        if place is None:
            self._items.append((key, value))
        else:
            self._desk(place).rows.append((key, value))

    def put_secrets(self) -> None:
        """The rows that nothing may ever show: each holds `SECRET`."""
        self._items += secrets()

    def put_graph(self, graph: Graph) -> None:
        """The blobs of a conversation graph, as the editor keeps them."""
        self._disk += [(f"agentKv:blob:{id}", data) for id, data in graph.blobs.items()]

    def list_head(self, entry: session_lists.Entry) -> None:
        """Name a session in the index, whether or not there is anything to read."""
        if entry.place is not None:
            self._desk(entry.place)
        self._entries[entry.id] = entry

    def composer(
        self,
        messages: Sequence[Message] = (),
        *,
        generation: int | None = None,
        workspace: Place | None = None,
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
        """Add a session; ``head`` and ``data`` are laid over its index entry and its composer data.

        ``is_in_workspace`` keeps an inline session inside the workspace's own
        list, as the first composers did; ``is_map_text`` writes its tool calls
        as JSON inside JSON.
        """
        generation = self.generation if generation is None else generation
        if generation not in COMPOSER_VERSIONS:
            raise ValueError(f"no composers in generation {generation}: chat tabs are written with `tab`")
        rng = self._draw()
        id = id or new_id(rng)
        place = workspace or self.workspace(local("/home/dev/shop"))
        self._desk(place)
        start = STARTS[generation] + 3_600_000 * self._drawn if at is None else at
        said = settle(messages, rng, start)
        until = max((message.at or start for message in said), default=start)
        folder = place.path or "/home/dev"
        state = "~"
        if has_graph if has_graph is not None else generation >= 3 and said:
            graph = build_graph(said, [message.at or start for message in said], folder=folder)
            self.put_graph(graph)
            self.put(f"agentKv:checkpoint:{id}", graph.root_id)
            prompts = [message for message in said if message.role == "user"]
            for message, root in zip(prompts, graph.older, strict=False):
                self.put(f"agentKv:bubbleCheckpoint:{id}:{message.id}", root)
            state = graph.state
        record = composer_data(
            id,
            name=name,
            at=start,
            until=until,
            generation=generation,
            version=COMPOSER_VERSIONS[generation][-1] if version is None else version,
            place=place,
            state=state,
            **(_inline(said, is_map_text) if generation == 1 else {"headers": _headers(said, generation)}),
        ) | dict(data or {})
        if generation >= 2 and has_bubbles:
            written = bubble_version or (3 if generation >= 3 else 2)
            for message in said:
                if message.is_stored:
                    self._put_bubble(id, message, generation, written)
        if has_sidecars:
            self._disk += sidecars(id, [str(message.id) for message in said], at=start, folder=folder)
        if has_data and not is_in_workspace:
            self.put(f"composerData:{id}", self._stored(record))
        if is_listed:
            inline = record if is_in_workspace else None
            self.list_head(
                session_lists.Entry(id, generation, place, name, start, until, dict(head or {}), inline)
            )
        return Composer(id, generation, place, said, record)

    def tab(
        self,
        messages: Sequence[Message],
        *,
        workspace: Place | None = None,
        id: str | None = None,
        name: str = "Regex help",
        at: int | None = None,
        variant: bool = False,
    ) -> str:
        """Add a tab of the chat panel, from before composers; ``variant`` uses its other field names."""
        rng = self._draw()
        place = workspace or self.workspace(local("/home/dev/shop"))
        id = id or new_id(rng)
        start = STARTS[0] if at is None else at
        bubbles = [tab_bubble(said, id=str(said.id)) for said in settle(messages, rng, start)]
        names = (
            ("id", "title", "timestamp", "messages")
            if variant
            else ("tabId", "chatTitle", "lastSendTime", "bubbles")
        )
        self._desk(place).tabs.append(dict(zip(names, (id, name, start, bubbles), strict=True)))
        return id

    def write(self) -> Path:
        """Write everything added since the last time. Returns the root."""
        self._writes += 1
        for desk in self._desks.values():
            self._write_desk(desk)
        mtime = self._mtime()
        disk, items = list(self._disk), list(self._items)
        schema = session_lists.KEY_VALUE_SCHEMA
        headers: list[list[Cell]] = []
        if self.generation >= 3:
            frozen = [entry for entry in self._entries.values() if entry.generation <= 3]
            listed = list(self._entries.values()) if self.generation == 3 else frozen
            if listed:
                items.append(("composer.composerHeaders", session_lists.global_list(listed, 3)))
        if self.generation >= 4:
            schema += session_lists.header_schema(self._columns)
            headers = self._changed_headers()
            disk.append(("composer.composerHeaders.migratedToTable", "true"))
            items += session_lists.gates(mtime)
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
        """The copy of an earlier state that Cursor keeps beside its database: no second history."""
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

    def _write_desk(self, desk: _Desk) -> None:
        path = self.workspace_database(desk.place)
        entries = [entry for entry in self._entries.values() if entry.place == desk.place]
        listed = session_lists.workspace_list(entries, generation=self.generation, is_bare=desk.is_bare_list)
        rows = list(desk.rows)
        if self.generation >= 1:
            rows.append(("composer.composerData", listed))
        rows += session_lists.pane_rows(
            (entry for entry in entries if entry.generation in (2, 3)), f"5a{desk.place.id[:6]}-pane"
        )
        if desk.tabs:
            rows.append((CHAT_DATA, dumps({"tabs": desk.tabs, "selectedTabId": None})))
        if rows == desk.written:
            return
        desk.written = [row for row in rows if row not in desk.rows]
        statement = database.insert_statement("ItemTable", ("key", "value"), rows)
        # The workspaces' own databases are in rollback mode.
        database.write(
            path, session_lists.KEY_VALUE_SCHEMA, [statement], journal="delete", mtime=self._mtime()
        )
        if desk.place.workspace_json is not None:
            path.with_name("workspace.json").write_text(desk.place.workspace_json)
        desk.rows.clear()

    def _put_bubble(self, id: str, message: Message, generation: int, version: int) -> None:
        record = bubble(
            message, id=str(message.id), at=message.at or 0, generation=generation, version=version
        )
        self.put(f"bubbleId:{id}:{message.id}", self._stored(record))

    def _stored(self, record: Mapping[str, Any]) -> Cell:
        text = dumps(record)
        return text if self._storage == "text" else text.encode()

    def _desk(self, place: Place) -> _Desk:
        return self._desks.setdefault(place.id, _Desk(place))

    def _draw(self) -> Random:
        """A generator of its own for every session, so that adding one changes no other."""
        self._drawn += 1
        return Random(f"{self.seed}/{self._drawn}")

    def _mtime(self) -> int:
        """After the last message, and later with every write, as a real clock would have it."""
        last = max((entry.until for entry in self._entries.values()), default=STARTS[self.generation])
        return last + 1000 * self._writes


def new_id(rng: Random) -> str:
    """A random id of the kind Cursor gives out."""
    return str(UUID(int=rng.getrandbits(128), version=4))


def settle(messages: Sequence[Message], rng: Random, start: int) -> tuple[Message, ...]:
    """Give an id, a time and a call id to every message that has none."""
    out = []
    for place, message in enumerate(messages):
        call = message.tool
        if call is not None and call.call_id is None:
            call = replace(call, call_id=f"call_{rng.getrandbits(64):016x}")
        at = start + place * _STEP if message.at is None else message.at
        out.append(replace(message, id=message.id or new_id(rng), at=at, tool=call))
    return tuple(out)


def _headers(said: Sequence[Message], generation: int) -> list[dict[str, Any]]:
    return [
        bubble_header(message, id=str(message.id), at=message.at or 0, generation=generation)
        for message in said
        if message.is_listed
    ]


def _inline(said: Sequence[Message], is_map_text: bool) -> dict[str, Any]:
    calls = {
        str(message.id): tool_data(message.tool, at=message.at or 0)
        for message in said
        if message.tool is not None
    }
    return {
        "conversation": [
            inline_bubble(
                message,
                id=str(message.id),
                at=message.at or 0,
                clock=5000 + place if place % 3 == 2 else None,
            )
            for place, message in enumerate(said)
        ],
        "bubble_map": dumps(calls) if is_map_text else calls,
    }
