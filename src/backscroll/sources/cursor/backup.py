"""Contents of a backup: all files of Cursor, or those of some sessions, without credentials.

A database that is reduced to some sessions has the same tables as the original. Its lists name only these
sessions, and tables that belong to no session are empty.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec import Raw, Struct

from backscroll.model.backup import SelectedFiles, SourceFile
from backscroll.readers.files import files_below
from backscroll.readers.sqlite import as_bytes, copy_rows, copy_schema, table_names
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_list, as_map, as_text, decode
from backscroll.sources.cursor.database.keys import has_table
from backscroll.sources.cursor.reader import list_units
from backscroll.sources.cursor.session.prompt_log import log_session_id
from backscroll.sources.cursor.uri import parse_uri
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing.folders import relocate as relocate
from backscroll.sources.cursor.writing.restore import plan_insert as plan_insert
from backscroll.sources.cursor_graph.blobs import StoredBlob, reachable_blobs, referenced_ids
from backscroll.sources.secret_fields import blank

_SECRET_KEYS = ("cursorAuth/", "secret://", "mcpOAuth")  # prefixes in ItemTable

# Numbers and blobs can be keys too, so the prefix is compared as text.
_IS_SECRET = " or ".join(["substr(cast(key as text), 1, ?) = ? collate nocase"] * len(_SECRET_KEYS))
_SECRET_ARGUMENTS = [value for prefix in _SECRET_KEYS for value in (len(prefix), prefix)]
_KEY_VALUE_TABLES = ("ItemTable", "cursorDiskKV")
_STORAGE_FILE = re.compile(r"User/workspaceStorage/[^/]+/(state\.vscdb|workspace\.json|images/.+)")
_KEY_FIELD = b"ncryptionKey"  # part of the name of every field that `blank` blanks


def backup_files(root: Path) -> Iterator[SourceFile]:
    """Return all databases, and the other files of each workspace."""
    for path in (locations.global_database(root), locations.search_database(root)):
        if locations.is_file(path):
            yield SourceFile(str(path), is_database=True, is_shared=True)
    for storage in locations.workspace_storages(root):
        database, workspace = storage.folder / "state.vscdb", storage.folder / "workspace.json"
        if locations.is_file(database) and locations.is_inside(database, root):
            yield SourceFile(str(database), is_database=True, is_shared=True)
        if locations.is_file(workspace):
            yield SourceFile(str(workspace), is_shared=True)
        if not (storage.folder / "images").is_symlink():
            yield from map(SourceFile, files_below(storage.folder / "images"))


def is_history_path(path: str) -> bool:
    root = Path()
    if path in (locations.global_database(root).as_posix(), locations.search_database(root).as_posix()):
        return True
    return _STORAGE_FILE.fullmatch(path) is not None


def expected_tables(path: str) -> frozenset[str]:
    is_search = path == locations.search_database(Path()).as_posix()
    return frozenset({"conversations"} if is_search else _KEY_VALUE_TABLES)


def remove_secrets(connection: Connection) -> None:
    """Delete logins and tokens, and blank encryption keys."""
    for table in _KEY_VALUE_TABLES:
        if not has_table(connection, table):
            continue
        connection.execute(f"delete from {table} where {_IS_SECRET}", _SECRET_ARGUMENTS)  # noqa: S608
        for (rowid,) in connection.execute(_select_keyed("rowid", table), [_KEY_FIELD]).fetchall():
            _blank_value(connection, table, rowid)


def copy_secrets(current: Connection, restored: Connection) -> None:
    """Copy logins and tokens, and the encryption keys of sessions that are otherwise the same."""
    for table in _KEY_VALUE_TABLES:
        if not has_table(current, table) or not has_table(restored, table):
            continue
        logins = current.execute(
            f"select cast(key as text), value, typeof(value) = 'text' from {table} where {_IS_SECRET}",  # noqa: S608
            _SECRET_ARGUMENTS,
        )
        for key, value, is_text in logins:
            kind = "cast(? as text)" if is_text else "?"
            insert = f"insert or replace into {table} (key, value) values (cast(? as text), {kind})"  # noqa: S608
            restored.execute(insert, [key, value])
        for key, value in current.execute(_select_keyed("key, cast(value as blob)", table), [_KEY_FIELD]):
            update = (
                f"update {table} set value = iif(typeof(value) = 'text', cast(:value as text), :value)"  # noqa: S608
                " where key = cast(:key as text) and cast(value as blob) = :blanked"
            )
            restored.execute(update, {"key": key, "value": value, "blanked": blank(value)[0]})


def _select_keyed(columns: str, table: str) -> str:
    return f"select {columns} from {table} where instr(cast(value as blob), ?)"  # noqa: S608 - constants


def _blank_value(connection: Connection, table: str, rowid: int) -> None:
    query = f"select typeof(value) = 'text', cast(value as blob) from {table} where rowid = ?"  # noqa: S608
    is_text, value = connection.execute(query, [rowid]).fetchone()
    kind = "text" if is_text else "blob"
    update = f"update {table} set value = cast(? as {kind}) where rowid = ?"  # noqa: S608 - constants
    connection.execute(update, [blank(value)[0], rowid])


# Selected sessions

_BLOB, _CONTENT = "agentKv:blob:", "composer.content."
_ROOT_FAMILIES = ("agentKv:checkpoint:", "agentKv:bubbleCheckpoint:")
_MIGRATION_KEY = "composer.composerHeaders.migratedToTable"
_CONTENT_REFERENCE = re.compile(rb"composer\.content\.([0-9a-f]{64})")
_STATE = re.compile(rb'"conversationState"\s*:\s*"~?([A-Za-z0-9+/=_-]+)"')
_BLOB_ID = re.compile(rb"[0-9a-f]{64}")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ID_FIELDS = ("selectedComposerId", "lastFocusedComposerId", "selectedChatId", "selectedTabId")
_GLOBAL_FOLDER = "globalStorage"
_IN_LIST = "in (select value from json_each(?))"


class _ComposerLinks(Struct, rename="camel"):
    """Fields of a session's record that name its subagents and its workspace."""

    sub_composer_ids: Any = None
    subagent_composer_ids: Any = None
    workspace_identifier: Any = None


# Files of selected sessions


def select_files(root: Path, session_ids: Collection[str], paths: Collection[str]) -> SelectedFiles:
    """Return the databases, workspaces and images of some sessions, and the ids of their subagents too."""
    user_data = UserData(root)
    try:
        ids, identifiers = _with_subagents(user_data, session_ids)
        storage_ids = _storage_ids(user_data, ids, identifiers)
        files = [
            SourceFile(str(path), is_database=True, is_shared=True)
            for path in (locations.global_database(root), locations.search_database(root))
            if locations.is_file(path)
        ]
        for storage in locations.workspace_storages(root):
            if storage.id not in storage_ids:
                continue
            database, workspace = storage.folder / "state.vscdb", storage.folder / "workspace.json"
            if locations.is_file(database) and locations.is_inside(database, root):
                files.append(SourceFile(str(database), is_database=True, is_shared=True))
            if locations.is_file(workspace):
                files.append(SourceFile(str(workspace), is_shared=True))
        files += (SourceFile(str(path)) for path in _images(user_data, ids))
        return SelectedFiles(tuple(files), frozenset(ids | _tab_names(user_data, ids)))
    finally:
        user_data.close()


def _with_subagents(
    user_data: UserData, session_ids: Collection[str]
) -> tuple[set[str], list[dict[str, Any]]]:
    """Return the sessions and their subagents, and the workspaces in their records.

    Subagents that started each other in a circle count as sessions.
    """
    parents = {
        entry_id: parent
        for entry_id, entry in user_data.global_list().entries.items()
        if (parent := as_text(as_map(entry.header.subagent_info).get("parentComposerId")))
    }
    children: dict[str, set[str]] = {}
    for entry_id, parent in parents.items():
        children.setdefault(parent, set()).add(entry_id)
    above = {one for session_id in session_ids for one in _ancestors(session_id, parents)}
    found: set[str] = set()
    identifiers: list[dict[str, Any]] = []
    pending = set(session_ids)
    while pending:
        found |= pending
        following: set[str] = set()
        for session_id in pending:
            links = _links(user_data, session_id)
            ids = [*as_list(links.sub_composer_ids), *as_list(links.subagent_composer_ids)]
            following |= {as_text(one) for one in ids} | children.get(session_id, set())
            identifiers.append(as_map(links.workspace_identifier))
        pending = following - found - above - {""}
    return found, identifiers


def _ancestors(session_id: str, parents: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    current = parents.get(session_id)
    while current is not None and current not in found:
        found.add(current)
        current = parents.get(current)
    return found


def _links(user_data: UserData, session_id: str) -> _ComposerLinks:
    path = user_data.global_path
    if not locations.is_file(path):
        return _ComposerLinks()
    value = user_data.row_loader(path).values_by_key([f"composerData:{session_id}"])
    try:
        return decode(next(iter(value.values()), b"{}"), _ComposerLinks)
    except UndecodableError:
        return _ComposerLinks()


def _storage_ids(
    user_data: UserData, ids: Collection[str], identifiers: Iterable[dict[str, Any]]
) -> set[str]:
    """Return the storages that list one of the sessions, and those of their folders."""
    entries = user_data.global_list().entries
    found = {storage_id for one in ids for storage_id in user_data.session_storage_ids(one)}
    headers = [as_map(entries[one].header.workspace_identifier) for one in ids if one in entries]
    found |= {entries[one].workspace_id for one in ids if one in entries}
    for identifier in (*identifiers, *headers):
        found.add(as_text(identifier.get("id")))
        if folder := parse_uri(identifier.get("uri") or identifier.get("configPath")):
            found.update(user_data.folder_storage_ids(folder))
    for file in user_data.databases():
        tabs = {tab.id for tab in user_data.database_lists(file).tabs}
        tabs |= {f"{file.storage_id}-{tab}" for tab in tabs} | {log_session_id(file.storage_id)}
        if not tabs.isdisjoint(ids) or not user_data.row_summaries(file.path).keys().isdisjoint(ids):
            found.add(file.storage_id)
    return found - {""}


def _tab_names(user_data: UserData, ids: Collection[str]) -> set[str]:
    """Return the selected tabs of chat panels as ``storage-tab``. Two workspaces may have the same tab id."""
    names: set[str] = set()
    for unit in list_units(user_data):
        if unit.key.startswith("tab:") and unit.session_id in ids:
            storage = next(file.storage_id for file in user_data.databases() if str(file.path) == unit.path)
            names.add(f"{storage}-{unit.key.removeprefix('tab:')}")
    return names


def _images(user_data: UserData, ids: Collection[str]) -> list[Path]:
    """Return the pasted images that rows of the sessions name."""
    images = user_data.image_files()
    if not images:
        return []
    named: set[str] = set()
    for file in user_data.databases():
        rows = user_data.database(file.path).read(lambda db: list(_named_uuids(db, ids)))
        named.update(rows)
    return sorted(path for uuid, path in images.items() if uuid in named)


def _named_uuids(connection: Connection, ids: Collection[str]) -> Iterator[str]:
    for _, value in _values(connection, _session_rowids(connection, set(ids))):
        yield from (found.decode().lower() for found in _UUID.findall(value))
    for key in (session_lists.COMPOSERS_KEY, session_lists.CHAT_KEY):
        if keys.has_table(connection, "ItemTable"):
            reduced = _reduced_list(key, session_lists.read_item(connection, key) or b"{}", ids)
            yield from (found.decode().lower() for found in _UUID.findall(reduced))


def select_records(path: str, content: Iterable[bytes], session_ids: Collection[str]) -> bytes:
    """Return the file as it is: the ``workspace.json`` of a session's workspace."""
    return b"".join(content)


# Rows of selected sessions


def copy_sessions(path: str, source: Connection, target: Connection, session_ids: Collection[str]) -> bool:
    """Copy the rows of some sessions to an empty database. Return whether there are any.

    ``path`` is the path of the original database below the root.
    """
    ids = set(session_ids)
    copy_schema(source, target)
    tables = set(table_names(source))
    if "conversations" in tables:
        return _copy_search_rows(source, target, ids, tables)
    count = 0
    if "cursorDiskKV" in tables:
        count += _copy_key_values(source, target, ids)
    if "composerHeaders" in tables:
        count += copy_rows(source, target, "composerHeaders", f"composerId {_IN_LIST}", [_json(ids)])
    if "ItemTable" in tables:
        count += _copy_items(source, target, ids, Path(path).parent.name)
    return count > 0


def _copy_key_values(source: Connection, target: Connection, ids: set[str]) -> int:
    """Copy the rows of sessions with everything that they refer to. Return the number of rows."""
    rowids = _session_rowids(source, ids)
    roots: list[str] = []
    contents: set[str] = set()
    for key, value in _values(source, rowids):
        if key.startswith(_ROOT_FAMILIES):
            roots += (found.decode() for found in _BLOB_ID.findall(value))
        for state in _STATE.findall(value):
            roots += referenced_ids(_decode_base64(state))
        contents.update(_CONTENT + found.decode() for found in _CONTENT_REFERENCE.findall(value))
    count = copy_rows(source, target, "cursorDiskKV", f"rowid {_IN_LIST}", [_json(rowids)])
    if not count:
        return 0
    shared = [_BLOB + blob_id for blob_id, _ in reachable_blobs(roots, lambda found: _blobs(source, found))]
    shared += [*sorted(contents), _MIGRATION_KEY]
    copy_rows(source, target, "cursorDiskKV", f"key {_IN_LIST}", [_json(shared)])
    return count


def _belongs_to(key: Any, ids: set[str]) -> bool:
    """Return whether a key contains the id of a session: ``family:id…`` or ``agentKv:family:id…``."""
    if key is None:
        return False
    parts = (as_bytes(key) or b"").decode("utf-8", "replace").split(":", 3)[:3]
    return not ids.isdisjoint(parts)


def _session_rowids(connection: Connection, ids: set[str]) -> list[int]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return []
    rows = connection.execute("select key, rowid from cursorDiskKV")
    return [rowid for key, rowid in rows if _belongs_to(key, ids)]


def _values(connection: Connection, rowids: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    """Yield key and value of rows in ``cursorDiskKV``. Empty rows are omitted."""
    for rowid in rowids:
        row = connection.execute("select key, value from cursorDiskKV where rowid = ?", [rowid]).fetchone()
        if row is not None and (value := as_bytes(row[1])) is not None:
            yield (as_bytes(row[0]) or b"").decode("utf-8", "replace"), value


def _blobs(connection: Connection, blob_ids: list[str]) -> list[tuple[str, StoredBlob]]:
    rows = connection.execute(
        f"select key, value, typeof(value) = 'text' from cursorDiskKV where key {_IN_LIST}",  # noqa: S608
        [_json(_BLOB + blob_id for blob_id in blob_ids)],
    ).fetchall()
    return [
        ((as_bytes(key) or b"").decode()[len(_BLOB) :], StoredBlob(as_bytes(value) or b"", bool(is_text)))
        for key, value, is_text in rows
    ]


def _copy_items(source: Connection, target: Connection, ids: set[str], storage_id: str) -> int:
    """Copy the entries of sessions in the lists of a database. Return the number of lists with entries."""
    prefix = f"{storage_id}-" if storage_id != _GLOBAL_FOLDER else "-"
    tab_ids = {one.removeprefix(prefix) for one in ids if one.startswith(prefix)}
    lists = {
        session_lists.COMPOSERS_KEY: ids,
        session_lists.HEADERS_KEY: ids,
        session_lists.CHAT_KEY: tab_ids,
    }
    count = 0
    for key, wanted in lists.items():
        value = session_lists.read_item(source, key)
        if value is not None:
            reduced = _reduced_list(key, value, wanted)
            count += any(f'"{one}"'.encode() in reduced for one in wanted)
            _put_item(source, target, key, reduced)
    for key, reduced in _reduced_projects(source, ids):
        _put_item(source, target, key, reduced)
    kept = list(session_lists.NON_JSON_KEYS)
    if log_session_id(storage_id) in ids:
        kept += session_lists.PROMPT_LOG_KEYS
        count += 1
    copy_rows(source, target, "ItemTable", f"key {_IN_LIST}", [_json(kept)])
    return count


def _reduced_list(key: str, value: bytes, ids: Collection[str]) -> bytes:
    """Return a list of sessions with only some entries. Flags beside the list are kept."""
    field = "tabs" if key == session_lists.CHAT_KEY else "allComposers"
    id_fields = ("tabId", "id") if key == session_lists.CHAT_KEY else ("composerId",)
    try:
        document = decode(value, Raw)
        if bytes(memoryview(document)[:1]) != b"{":
            return msgspec.json.encode(_entries(document, id_fields, ids))
        fields = decode(document, dict[str, Raw])
    except UndecodableError:
        return b"{}"
    if field == "tabs" and "tabs" not in fields and "chatSessions" in fields:
        field = "chatSessions"
    kept: dict[str, Any] = {}
    for name, raw in fields.items():
        if name == field:
            kept[name] = _entries(raw, id_fields, ids)
        elif bytes(raw) in (b"true", b"false"):
            kept[name] = raw
        elif bytes(memoryview(raw)[:1]) == b"[":
            kept[name] = [one for one in _decoded_list(raw) if one in ids]
        elif name in _ID_FIELDS and msgspec.json.decode(raw) in ids:
            kept[name] = raw
    return msgspec.json.encode(kept)


def _entries(raw: Raw, id_fields: tuple[str, ...], ids: Collection[str]) -> list[Raw]:
    try:
        entries = decode(raw, list[Raw])
    except UndecodableError:
        return []
    kept = []
    for index, entry in enumerate(entries):
        try:
            fields = as_map(decode(entry, object))
        except UndecodableError:
            continue
        entry_ids = {as_text(fields.get(name)) for name in id_fields} - {""}
        if not (entry_ids or {f"tab-{index}"}).isdisjoint(ids):
            kept.append(entry)
    return kept


def _decoded_list(raw: Raw) -> list[Any]:
    try:
        return [one for one in as_list(decode(raw, object)) if isinstance(one, str)]
    except UndecodableError:
        return []


def _reduced_projects(source: Connection, ids: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the sidebar's projects of the sessions, and the sessions of each."""
    values: list[Any] = []
    for key in (session_lists.PROJECT_MEMBERS_KEY, session_lists.PROJECTS_KEY):
        try:
            values.append(decode(session_lists.read_item(source, key) or b"null", object))
        except UndecodableError:
            values.append(None)
    if values[0] is None:
        return
    members = {one: project for one, project in as_map(values[0]).items() if one in ids}
    projects = [one for one in as_list(values[1]) if as_map(one).get("id") in members.values()]
    yield session_lists.PROJECT_MEMBERS_KEY, msgspec.json.encode(members)
    yield session_lists.PROJECTS_KEY, msgspec.json.encode(projects)


def _put_item(source: Connection, target: Connection, key: str, value: bytes) -> None:
    """Insert a value with the storage class that it has in the source."""
    (kind,) = source.execute("select typeof(value) from ItemTable where key = ?", [key]).fetchone() or (b"",)
    cast = "text" if as_bytes(kind) == b"text" else "blob"
    target.execute(f"insert into ItemTable (key, value) values (?, cast(? as {cast}))", [key, value])  # noqa: S608


def _copy_search_rows(source: Connection, target: Connection, ids: set[str], tables: set[str]) -> bool:
    """Copy the rows of sessions in the database of the conversation search."""
    rows = source.execute(f"select fts_rowid from conversations where id {_IN_LIST}", [_json(ids)]).fetchall()  # noqa: S608
    copy_rows(source, target, "conversations", f"id {_IN_LIST}", [_json(ids)])
    if "conversation_search_candidates" in tables:
        copy_rows(source, target, "conversation_search_candidates", f"id {_IN_LIST}", [_json(ids)])
    if "conversation_fts" in tables:
        rowids = _json(rowid for (rowid,) in rows)
        copy_rows(source, target, "conversation_fts", f"rowid {_IN_LIST}", [rowids])
    return bool(rows)


def _decode_base64(data: bytes) -> bytes:
    try:
        return b64decode(data + b"=" * (-len(data) % 4))
    except (binascii.Error, ValueError):
        return b""


def _json(values: Iterable[object]) -> str:
    return msgspec.json.encode(list(values)).decode()
