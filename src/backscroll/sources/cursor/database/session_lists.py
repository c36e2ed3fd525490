"""The lists in which Cursor names its sessions, and the facts in their entries.

Since version 3.12 the list is a table. Versions 3.0 to 3.11 have one JSON list, older versions one list per
workspace. An upgrade leaves the older list in place without updating it, so only the newest list is used.
"""

from sqlite3 import Connection, DatabaseError
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from backscroll.model.problem import Fault
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor.database.decode import UndecodableError, as_list, as_map, as_text, decode
from backscroll.sources.cursor.database.keys import has_table, is_damage, readable_rows, row_count
from backscroll.sources.cursor.database.records import Composer, ComposerHeader, InlineConversation, Tab

COMPOSERS_KEY = "composer.composerData"
CHAT_KEY = "workbench.panel.aichat.view.aichat.chatdata"
PANE_PREFIX = "workbench.panel.composerChatViewPane"
PROMPT_LOG_KEYS = ("aiService.prompts", "aiService.generations")
WORKSPACE_KEY = "workspace"  # the folder, in some builds
WORKSPACE_KEYS = frozenset({COMPOSERS_KEY, CHAT_KEY, WORKSPACE_KEY, *PROMPT_LOG_KEYS})

HEADERS_KEY = "composer.composerHeaders"
VERSION_KEY = "composer.composerHeaders.version"
_GATE_KEY = "composer.composerHeaders.tableGateEnabled"
PROJECTS_KEY = "glass.localAgentProjects.v1"
PROJECT_MEMBERS_KEY = "glass.localAgentProjectMembership.v1"
GLOBAL_KEYS = frozenset({CHAT_KEY, HEADERS_KEY, VERSION_KEY, _GATE_KEY, PROJECTS_KEY, PROJECT_MEMBERS_KEY})
NON_JSON_KEYS = frozenset({VERSION_KEY, _GATE_KEY, WORKSPACE_KEY})  # plain text in some builds

_VIEW_PREFIX = "workbench.panel.aichat.view."


class ListEntry(Struct):
    """Entry of one session in a list."""

    header: ComposerHeader
    token: str = ""  # changes with the entry
    workspace_id: str = ""
    is_subagent: bool = False
    agent_kind: str | None = None
    fault: Fault | None = None
    is_row: bool = False  # a row of the header table, to be counted
    raw: bytes = b""  # the entry of a JSON list, unchanged


class GlobalList(Struct):
    """Session list of the global database."""

    source: str = "none"  # "table" or "json"; "none" if there is no list
    entries: dict[str, ListEntry] = {}
    projects: dict[str, dict[str, Any]] = {}  # by session id
    fault: str | None = None


class ListedTab(Struct, frozen=True):
    """Tab of the chat panel."""

    id: str
    title: str | None
    token: str


class DatabaseLists(Struct):
    """Lists in the keys of one database: usually a workspace's; the global database can list tabs too."""

    entries: dict[str, ListEntry] = {}
    inline_tokens: dict[str, str] = {}  # change tokens of sessions with the conversation in the list
    open_ids: frozenset[str] = frozenset()  # sessions that are open or focused
    tabs: tuple[ListedTab, ...] = ()
    has_prompt_log: bool = False
    workspace_value: bytes | None = None  # of `WORKSPACE_KEY`


def read_item(connection: Connection, key: str) -> bytes | None:
    """Return a value of ``ItemTable``. Pass only keys that this module names: others may be secrets."""
    try:
        found = connection.execute("select value from ItemTable where key = ?", [key]).fetchone()
    except DatabaseError as error:
        if not is_damage(error):
            raise
        # The index is damaged; the table itself may be intact.
        found = connection.execute("select value from ItemTable not indexed where key = ?", [key]).fetchone()
    return as_bytes(found[0]) if found else None


def cell_text(cell: object) -> str:
    """Return the text of a database cell; empty if it is NULL."""
    return (as_bytes(cell) or b"").decode("utf-8", "replace")


def read_global_list(connection: Connection) -> GlobalList:
    """Return the header table if there is one, else the JSON list."""
    has_item_table = has_table(connection, "ItemTable")
    projects = _read_projects(connection) if has_item_table else {}
    if has_table(connection, "composerHeaders"):
        table = _read_header_table(connection)
        # If the table was created but never filled, the older list is the current one.
        is_current = (
            table.entries
            or table.fault
            or not has_item_table
            or read_item(connection, VERSION_KEY) is not None
        )
        if is_current:
            table.projects = projects
            return table
    value = read_item(connection, HEADERS_KEY) if has_item_table else None
    if value is None:
        return GlobalList(projects=projects)
    try:
        entries = _parse_entries(value)[0]
    except UndecodableError as error:
        return GlobalList("json", {}, projects, f"{HEADERS_KEY} {error}")
    return GlobalList("json", entries, projects)


def _read_header_table(connection: Connection) -> GlobalList:
    names = [
        row[1].decode("utf-8", "replace") for row in connection.execute("pragma table_info(composerHeaders)")
    ]
    if "composerId" not in names or "value" not in names:
        return GlobalList(
            "table", fault="the table composerHeaders has no column composerId or no column value"
        )
    entries: dict[str, ListEntry] = {}
    rows = readable_rows(connection, "select * from composerHeaders")
    for row in rows:
        columns = dict(zip(names, row, strict=True))
        composer_id = cell_text(columns["composerId"])
        if composer_id:
            entries[composer_id] = _parse_header_row(composer_id, columns)
    is_complete = len(rows) >= row_count(connection, "composerHeaders")
    fault = None if is_complete else "the table composerHeaders is damaged and has lost rows"
    return GlobalList("table", entries, fault=fault)


def _parse_header_row(composer_id: str, columns: dict[str, Any]) -> ListEntry:
    value = as_bytes(columns["value"])
    fault: Fault | None = None
    header = ComposerHeader()
    if value is not None:
        try:
            header = decode(value, ComposerHeader)
        except UndecodableError as error:
            fault = error.fault("the list entry of the session")
        if as_text(header.composer_id) not in ("", composer_id):
            header, fault = (
                ComposerHeader(),
                Fault("unexpected-shape", "the row and its value are of different sessions"),
            )
    if header.created_at is None:
        header.created_at = columns.get("createdAt")
    if header.last_updated_at is None:
        header.last_updated_at = columns.get("lastUpdatedAt")
    if header.is_archived is None:
        header.is_archived = bool(columns.get("isArchived"))
    identifier = as_map(header.workspace_identifier)
    return ListEntry(
        header,
        token=f"{crc32(value or b''):x}.{columns.get('lastUpdatedAt')}",
        workspace_id=as_text(identifier.get("id")) or cell_text(columns.get("workspaceId")),
        is_subagent=bool(columns.get("isSubagent")),
        agent_kind=cell_text(columns.get("subagentTypeName")) or None,
        fault=fault,
        is_row=True,
    )


def _parse_entries(value: bytes) -> tuple[dict[str, ListEntry], dict[str, str]]:
    """Return the sessions of a JSON list, and the change tokens of those that contain their conversation."""
    entries: dict[str, ListEntry] = {}
    inline_tokens: dict[str, str] = {}
    for raw_entry in _raw_entries(value):
        try:
            header = decode(raw_entry, ComposerHeader)
        except UndecodableError:
            continue
        composer_id = as_text(header.composer_id)
        if not composer_id or composer_id in entries:
            continue
        raw = bytes(raw_entry)
        token = f"{crc32(raw):x}"
        identifier = as_map(header.workspace_identifier)
        entries[composer_id] = ListEntry(header, token, as_text(identifier.get("id")), raw=raw)
        if b'"conversation"' in raw and _has_conversation(raw_entry):
            inline_tokens[composer_id] = token
            entries[composer_id].raw = b""  # too large to keep in memory
    return entries, inline_tokens


def _raw_entries(value: bytes) -> list[Raw]:
    """Return the undecoded entries of a list, which may be wrapped in an object; empty if it is not a list.

    Raises `UndecodableError` if the value is not JSON.
    """
    entries = decode(value, Raw)
    if bytes(memoryview(entries)[:1]) == b"{":
        entries = decode(entries, dict[str, Raw]).get("allComposers", Raw(b"[]"))
    try:
        return decode(entries, list[Raw])
    except UndecodableError:
        return []


def entry_faults(key: str, value: bytes) -> list[Fault]:
    """Return the faults of single list entries. Raises `UndecodableError`."""
    if key not in (COMPOSERS_KEY, HEADERS_KEY, CHAT_KEY):
        return []
    faults = []
    for index, raw_entry in enumerate(raw_tabs(value) if key == CHAT_KEY else _raw_entries(value)):
        try:
            name = (
                "?"
                if key == CHAT_KEY and decode(raw_entry, Tab)
                else as_text(decode(raw_entry, ComposerHeader).composer_id)
            )
        except UndecodableError as error:
            faults.append(error.fault(f"entry {index} of the list"))
        else:
            faults += [] if name else [Fault("orphaned-record", f"entry {index} has no session id")]
    return faults


def inline_composer(connection: Connection, session_id: str) -> Composer | None:
    """Return the record of a session in the list of a workspace."""
    found = inline_entry(connection, session_id)
    return found[1] if found else None


def inline_entry(connection: Connection, session_id: str) -> tuple[bytes, Composer] | None:
    """Return the unchanged list entry and the record of a session in the list of a workspace."""
    value = read_item(connection, COMPOSERS_KEY) if has_table(connection, "ItemTable") else None
    try:
        for raw_entry in _raw_entries(value) if value is not None else []:
            raw = bytes(raw_entry)
            if f'"{session_id}"'.encode() in raw and (composer := _decode_composer(raw_entry, session_id)):
                return raw, composer
    except UndecodableError:
        return None
    return None


def _decode_composer(raw_entry: Raw, session_id: str) -> Composer | None:
    try:
        composer = decode(raw_entry, Composer)
    except UndecodableError:
        return None
    return composer if composer.composer_id == session_id else None


def _has_conversation(raw_entry: Raw) -> bool:
    try:
        return len(bytes(decode(raw_entry, InlineConversation).conversation)) > len(b"null")
    except UndecodableError:
        return False


def read_lists(connection: Connection) -> DatabaseLists:
    """Return the lists of one database. A value that is not JSON counts as empty here."""
    if not has_table(connection, "ItemTable"):
        return DatabaseLists()
    lists = DatabaseLists(tabs=_list_tabs(read_item(connection, CHAT_KEY)))
    lists.has_prompt_log = any(
        connection.execute("select 1 from ItemTable where key = ?", [key]).fetchone()
        for key in PROMPT_LOG_KEYS
    )
    lists.workspace_value = read_item(connection, WORKSPACE_KEY)
    open_ids = _pane_ids(connection)
    value = read_item(connection, COMPOSERS_KEY)
    if value is not None:
        try:
            lists.entries, lists.inline_tokens = _parse_entries(value)
            open_ids |= _selected_ids(decode(value, Raw))
        except UndecodableError:
            pass
    lists.open_ids = frozenset(open_ids)
    return lists


def _selected_ids(value: Raw) -> set[str]:
    if bytes(memoryview(value)[:1]) != b"{":
        return set()
    fields = decode(value, dict[str, Raw])
    ids: set[str] = set()
    for name in ("selectedComposerIds", "lastFocusedComposerIds"):
        ids.update(as_text(each) for each in as_list(_decode_or_none(fields.get(name))))
    for name in ("selectedComposerId", "lastFocusedComposerId", "selectedChatId"):
        ids.add(as_text(_decode_or_none(fields.get(name))))
    return ids - {""}


def _decode_or_none(raw: Raw | None) -> Any:
    try:
        return decode(raw, object) if raw is not None else None
    except UndecodableError:
        return None


def _pane_ids(connection: Connection) -> set[str]:
    rows = connection.execute(
        "select key, value from ItemTable where key >= ? and key < ?", [PANE_PREFIX, PANE_PREFIX + "/"]
    )
    ids: set[str] = set()
    for key, value in rows.fetchall():
        if key.endswith(b".hidden"):
            continue
        views = _decode_or_none(Raw(as_bytes(value) or b"null"))
        ids.update(name.removeprefix(_VIEW_PREFIX) for name in as_map(views) if name.startswith(_VIEW_PREFIX))
    return ids


def _list_tabs(value: bytes | None) -> tuple[ListedTab, ...]:
    """Return the conversations of the chat panel. A tab without an id is named by its index."""
    found: dict[str, ListedTab] = {}
    for index, raw in enumerate(raw_tabs(value) if value else []):
        try:
            tab = decode(raw, Tab)
        except UndecodableError:
            tab = Tab()
        tab_id = tab_id_of(tab, index)
        title = as_text(tab.chat_title) or as_text(tab.title) or None
        found.setdefault(tab_id, ListedTab(tab_id, title, f"{crc32(bytes(raw)):x}"))
    return tuple(found.values())


def raw_tabs(value: bytes) -> list[Raw]:
    """Return the undecoded tabs of the chat panel; empty if the value is of another type."""
    try:
        fields = decode(value, dict[str, Raw])
    except UndecodableError:
        return []
    for name in ("tabs", "chatSessions"):
        try:
            return decode(fields[name], list[Raw])
        except (KeyError, UndecodableError):
            continue
    return []


def raw_tab(connection: Connection, tab_id: str) -> bytes | None:
    """Return the stored JSON of a tab. If it has no id, the given id is added."""
    for index, raw in enumerate(raw_tabs(read_item(connection, CHAT_KEY) or b"null")):
        try:
            tab = decode(raw, Tab)
        except UndecodableError:
            continue
        if tab_id_of(tab, index) == tab_id:
            data = bytes(raw)
            if as_text(tab.tab_id) or as_text(tab.id):
                return data
            return b'{"tabId":' + msgspec.json.encode(tab_id) + (b"," if len(data) > 2 else b"") + data[1:]
    return None


def tab_id_of(tab: Tab, index: int) -> str:
    """Return the id of a tab, or a name made of its index."""
    return as_text(tab.tab_id) or as_text(tab.id) or f"tab-{index}"


def _read_projects(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return the sidebar's project of each session, if the project has a workspace."""
    stored = as_list(_decode_or_none(Raw(read_item(connection, PROJECTS_KEY) or b"null")))
    projects = {as_text(project.get("id")): project for project in map(as_map, stored)}
    members = as_map(_decode_or_none(Raw(read_item(connection, PROJECT_MEMBERS_KEY) or b"null")))
    return {
        composer_id: projects[project_id]
        for composer_id, project_id in members.items()
        if isinstance(project_id, str) and projects.get(project_id, {}).get("workspace")
    }
