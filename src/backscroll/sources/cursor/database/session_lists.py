"""Which sessions Cursor itself lists, and what the lists say of them.

Cursor 3.12 keeps a table, 3.0 to 3.11 kept one JSON list, and before that every
workspace had its own. Older lists stay behind, frozen, when a newer one is
there, so exactly one of them is believed.
"""

from sqlite3 import Connection, DatabaseError
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from backscroll.model import Fault
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor.database.decode import UndecodableError, as_list, as_map, as_text, decode
from backscroll.sources.cursor.database.keys import has_table, is_damage, readable, row_count
from backscroll.sources.cursor.database.record_types import Composer, ComposerHeader, InlineConversation, Tab

__all__ = [
    "BARE_KEYS",
    "CHAT_KEY",
    "COMPOSERS_KEY",
    "GLOBAL_KEYS",
    "HEADERS_KEY",
    "LOG_KEYS",
    "MEMBERS_KEY",
    "PANE_PREFIX",
    "PROJECTS_KEY",
    "WORKSPACE_KEYS",
    "DatabaseLists",
    "GlobalList",
    "ListEntry",
    "ListedTab",
    "entry_faults",
    "global_list",
    "inline",
    "inline_entry",
    "item",
    "lists",
    "raw_tab",
    "tab_list",
    "tab_name",
]

COMPOSERS_KEY = "composer.composerData"
CHAT_KEY = "workbench.panel.aichat.view.aichat.chatdata"
PANE_PREFIX = "workbench.panel.composerChatViewPane"
LOG_KEYS = ("aiService.prompts", "aiService.generations")
WORKSPACE_KEYS = frozenset({COMPOSERS_KEY, CHAT_KEY, *LOG_KEYS})

HEADERS_KEY = "composer.composerHeaders"
_VERSION_KEY = "composer.composerHeaders.version"
_GATE_KEY = "composer.composerHeaders.tableGateEnabled"
PROJECTS_KEY = "glass.localAgentProjects.v1"
MEMBERS_KEY = "glass.localAgentProjectMembership.v1"
GLOBAL_KEYS = frozenset({CHAT_KEY, HEADERS_KEY, _VERSION_KEY, _GATE_KEY, PROJECTS_KEY, MEMBERS_KEY})
BARE_KEYS = frozenset({_VERSION_KEY, _GATE_KEY})  # text that is no JSON in some builds

_SHOWN_PREFIX = "workbench.panel.aichat.view."


class ListEntry(Struct):
    """What a list says of one session."""

    header: ComposerHeader
    token: str = ""  # changes with the entry
    workspace_id: str = ""
    is_subagent: bool = False
    agent_kind: str | None = None
    fault: Fault | None = None
    is_row: bool = False  # a row of the table, to be accounted for
    raw: bytes = b""  # the entry of a JSON list as it lies there


class GlobalList(Struct):
    """The list that is believed, of the global database."""

    source: str = "none"  # "table", "json" or "none"
    entries: dict[str, ListEntry] = {}
    projects: dict[str, dict[str, Any]] = {}  # session id to the project it was put into
    fault: str | None = None


class ListedTab(Struct, frozen=True):
    id: str
    title: str | None
    token: str


class DatabaseLists(Struct):
    """What one database's own keys list: of a workspace normally, tabs of the global one too."""

    entries: dict[str, ListEntry] = {}
    inline: dict[str, str] = {}  # sessions whose conversation is in the list itself, with a change token
    shown: frozenset[str] = frozenset()  # open or focused
    tabs: tuple[ListedTab, ...] = ()
    has_log: bool = False  # of prompts


def item(connection: Connection, key: str) -> bytes | None:
    """One value of ``ItemTable``. Only ever asked for keys named in this room: others may hold secrets."""
    try:
        found = connection.execute("select value from ItemTable where key = ?", [key]).fetchone()
    except DatabaseError as error:
        if not is_damage(error):
            raise
        # It is the index that is damaged; the table itself may still be whole.
        found = connection.execute("select value from ItemTable not indexed where key = ?", [key]).fetchone()
    return as_bytes(found[0]) if found else None


def global_list(connection: Connection) -> GlobalList:
    """The global list: the table where there is one, else the JSON list."""
    has_items = has_table(connection, "ItemTable")
    projects = _projects(connection) if has_items else {}
    if has_table(connection, "composerHeaders"):
        found = _from_table(connection)
        # A table that was made but never filled leaves the older list in force.
        is_live = found.entries or found.fault or not has_items or item(connection, _VERSION_KEY) is not None
        if is_live:
            found.projects = projects
            return found
    value = item(connection, HEADERS_KEY) if has_items else None
    if value is None:
        return GlobalList(projects=projects)
    try:
        entries = _entries(value)[0]
    except UndecodableError as error:
        return GlobalList("json", {}, projects, f"{HEADERS_KEY}: {error}")
    return GlobalList("json", entries, projects)


def _from_table(connection: Connection) -> GlobalList:
    names = [
        row[1].decode("utf-8", "replace") for row in connection.execute("pragma table_info(composerHeaders)")
    ]
    if "composerId" not in names or "value" not in names:
        return GlobalList("table", fault="the table composerHeaders has no columns composerId and value")
    entries: dict[str, ListEntry] = {}
    rows = readable(connection, "select * from composerHeaders")
    for row in rows:
        columns = dict(zip(names, row, strict=True))
        composer_id = _text(columns["composerId"])
        if composer_id:
            entries[composer_id] = _from_row(composer_id, columns)
    is_whole = len(rows) >= row_count(connection, "composerHeaders")
    fault = None if is_whole else "rows of the table composerHeaders are lost: it is damaged"
    return GlobalList("table", entries, fault=fault)


def _from_row(composer_id: str, columns: dict[str, Any]) -> ListEntry:
    value = as_bytes(columns["value"])
    fault: Fault | None = None
    header = ComposerHeader()
    if value is not None:
        try:
            header = decode(value, ComposerHeader)
        except UndecodableError as error:
            fault = Fault("not-json", str(error))
        if as_text(header.composer_id) not in ("", composer_id):
            header, fault = (
                ComposerHeader(),
                Fault("unexpected-shape", "the row is of another session than its value"),
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
        workspace_id=as_text(identifier.get("id")) or _text(columns.get("workspaceId")),
        is_subagent=bool(columns.get("isSubagent")),
        agent_kind=_text(columns.get("subagentTypeName")) or None,
        fault=fault,
        is_row=True,
    )


def _text(value: Any) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace")


def _entries(value: bytes) -> tuple[dict[str, ListEntry], dict[str, str]]:
    """The sessions of a JSON list, wrapped or bare, and those that carry their conversation."""
    entries: dict[str, ListEntry] = {}
    inline: dict[str, str] = {}
    for each in _listed(value):
        try:
            header = decode(each, ComposerHeader)
        except UndecodableError:
            continue
        composer_id = as_text(header.composer_id)
        if not composer_id or composer_id in entries:
            continue
        raw = bytes(each)
        token = f"{crc32(raw):x}"
        identifier = as_map(header.workspace_identifier)
        entries[composer_id] = ListEntry(header, token, as_text(identifier.get("id")), raw=raw)
        if b'"conversation"' in raw and _carries(each):
            inline[composer_id] = token
            entries[composer_id].raw = b""  # too much to stay in hand
    return entries, inline


def _listed(value: bytes) -> list[Raw]:
    """The entries of a list, undecoded; no list is an empty one, and no JSON is `UndecodableError`."""
    whole = decode(value, Raw)
    if bytes(memoryview(whole)[:1]) == b"{":
        whole = decode(whole, dict[str, Raw]).get("allComposers", Raw(b"[]"))
    try:
        return decode(whole, list[Raw])
    except UndecodableError:
        return []


def entry_faults(key: str, value: bytes) -> list[Fault]:
    """Return the problems of single list entries. Raises `UndecodableError`."""
    if key not in (COMPOSERS_KEY, HEADERS_KEY, CHAT_KEY):
        return []
    faults = []
    for number, each in enumerate(tab_list(value) if key == CHAT_KEY else _listed(value)):
        try:
            name = (
                "?"
                if key == CHAT_KEY and decode(each, Tab)
                else as_text(decode(each, ComposerHeader).composer_id)
            )
        except UndecodableError as error:
            faults.append(Fault("not-json", f"entry {number} could not be read: {error}"))
        else:
            faults += [] if name else [Fault("orphaned-record", f"entry {number} names no session")]
    return faults


def inline(connection: Connection, session: str) -> Composer | None:
    """A session's record out of a workspace's own list."""
    found = inline_entry(connection, session)
    return found[1] if found else None


def inline_entry(connection: Connection, session: str) -> tuple[bytes, Composer] | None:
    """The same, with the entry as it lies there."""
    value = item(connection, COMPOSERS_KEY) if has_table(connection, "ItemTable") else None
    try:
        for each in _listed(value) if value is not None else []:
            raw = bytes(each)
            if f'"{session}"'.encode() in raw and (found := _record(each, session)):
                return raw, found
    except UndecodableError:
        return None
    return None


def _record(each: Raw, session: str) -> Composer | None:
    try:
        found = decode(each, Composer)
    except UndecodableError:
        return None
    return found if found.composer_id == session else None


def _carries(each: Raw) -> bool:
    try:
        return len(bytes(decode(each, InlineConversation).conversation)) > len(b"null")
    except UndecodableError:
        return False


def lists(connection: Connection) -> DatabaseLists:
    """What the keys of one database list. A value that is no JSON lists nothing; the account says so."""
    if not has_table(connection, "ItemTable"):
        return DatabaseLists()
    found = DatabaseLists(tabs=_tabs(item(connection, CHAT_KEY)))
    found.has_log = any(
        connection.execute("select 1 from ItemTable where key = ?", [key]).fetchone() for key in LOG_KEYS
    )
    shown = _panes(connection)
    value = item(connection, COMPOSERS_KEY)
    if value is not None:
        try:
            found.entries, found.inline = _entries(value)
            shown |= _selected(decode(value, Raw))
        except UndecodableError:
            pass
    found.shown = frozenset(shown)
    return found


def _selected(whole: Raw) -> set[str]:
    if bytes(memoryview(whole)[:1]) != b"{":
        return set()
    fields = decode(whole, dict[str, Raw])
    ids: set[str] = set()
    for name in ("selectedComposerIds", "lastFocusedComposerIds"):
        ids.update(as_text(each) for each in as_list(_any(fields.get(name))))
    for name in ("selectedComposerId", "lastFocusedComposerId", "selectedChatId"):
        ids.add(as_text(_any(fields.get(name))))
    return ids - {""}


def _any(raw: Raw | None) -> Any:
    try:
        return decode(raw, object) if raw is not None else None
    except UndecodableError:
        return None


def _panes(connection: Connection) -> set[str]:
    rows = connection.execute(
        "select key, value from ItemTable where key >= ? and key < ?", [PANE_PREFIX, PANE_PREFIX + "/"]
    )
    ids: set[str] = set()
    for key, value in rows.fetchall():
        if key.endswith(b".hidden"):
            continue
        views = _any(Raw(as_bytes(value) or b"null"))
        ids.update(
            name.removeprefix(_SHOWN_PREFIX) for name in as_map(views) if name.startswith(_SHOWN_PREFIX)
        )
    return ids


def _tabs(value: bytes | None) -> tuple[ListedTab, ...]:
    """The conversations of the chat panel; those without an id are named by their place."""
    found: dict[str, ListedTab] = {}
    for number, raw in enumerate(tab_list(value) if value else []):
        try:
            tab = decode(raw, Tab)
        except UndecodableError:
            tab = Tab()
        name = tab_name(tab, number)
        title = as_text(tab.chat_title) or as_text(tab.title) or None
        found.setdefault(name, ListedTab(name, title, f"{crc32(bytes(raw)):x}"))
    return tuple(found.values())


def tab_list(value: bytes) -> list[Raw]:
    """The tabs of a chat panel's value, undecoded; empty when it is none."""
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
    """A tab as it lies there, with the name it goes by where it has none of its own."""
    for number, raw in enumerate(tab_list(item(connection, CHAT_KEY) or b"null")):
        try:
            tab = decode(raw, Tab)
        except UndecodableError:
            continue
        if tab_name(tab, number) == tab_id:
            data = bytes(raw)
            if as_text(tab.tab_id) or as_text(tab.id):
                return data
            return b'{"tabId":' + msgspec.json.encode(tab_id) + (b"," if len(data) > 2 else b"") + data[1:]
    return None


def tab_name(tab: Tab, number: int) -> str:
    return as_text(tab.tab_id) or as_text(tab.id) or f"tab-{number}"


def _projects(connection: Connection) -> dict[str, dict[str, Any]]:
    """The project that the sidebar puts a session into, where it has a workspace."""
    known = {
        as_text(project.get("id")): project
        for project in map(as_map, as_list(_any(Raw(item(connection, PROJECTS_KEY) or b"null"))))
    }
    members = as_map(_any(Raw(item(connection, MEMBERS_KEY) or b"null")))
    return {
        composer_id: known[project]
        for composer_id, project in members.items()
        if isinstance(project, str) and known.get(project, {}).get("workspace")
    }
