"""Raw rows of a session, which the archive keeps so that the session can be restored.

Of lists with many sessions, only the entry of this session is returned. Other rows of the database, such as
file snapshots and login tokens, are not read.
"""

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.model.stream import RawRow
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode
from backscroll.sources.cursor.database.session_rows import RowLoader
from backscroll.sources.cursor.session.agent_record import BLOB_ID_DIGITS, decode_state
from backscroll.sources.cursor.uri import parse_uri
from backscroll.sources.cursor.user_data import DatabaseFile, UserData
from backscroll.sources.cursor_graph.blobs import StoredBlob, reachable_blobs, referenced_ids
from backscroll.sources.secret_fields import blank

_BATCH_BYTES = 1024 * 1024
_MAX_FILE_BYTES = 1024 * 1024

# Fields with temporary state: an old value is not worth keeping.
_VOLATILE_COMPOSER_FIELDS = (
    "activeCustomMode",
    "contextUsagePercent",
    "conversationState",
    "generatingBubbleIds",
    "grouping",
    "latestChatGenerationUUID",
    "promptContextUsageTree",
    "promptTokenBreakdown",
    "queueItems",
    "richText",
    "status",
    "subtitle",
    "text",
)
_VOLATILE_BUBBLE_FIELDS = ("reviewData", "status")
_VOLATILE_ENTRY_FIELDS = ("subtitle",)


class _ComposerLinks(Struct, rename="camel"):
    """Fields of a composerData record that refer to other rows, and its name."""

    name: Any = None
    conversation_state: Any = None
    workspace_identifier: Any = None


def session_rows(user_data: UserData, path: Path, session_id: str) -> Iterator[RawRow]:
    """Return the rows of a session that has its own rows or is in a list."""
    row_loader = user_data.row_loader(path)
    keys_by_rowid = row_loader.query_keys(lambda connection: _keys_by_rowid(connection, session_id))
    links = _ComposerLinks()
    for rowid, data, is_text in row_loader.stored_rows(keys_by_rowid, _BATCH_BYTES):
        key = keys_by_rowid[rowid]
        value, blanked = blank(data) if data is not None else (None, ())
        volatile: tuple[str, ...] = ()
        if key.startswith("bubbleId:"):
            volatile = _VOLATILE_BUBBLE_FIELDS
        elif key.startswith("composerData:"):
            volatile = _VOLATILE_COMPOSER_FIELDS
            links = _decode_links(value)
        yield RawRow(
            table="cursorDiskKV",
            key=key,
            value=value,
            is_text=bool(is_text),
            blanked=blanked,
            volatile=volatile,
        )
    yield from _agent_record_rows(row_loader, session_id, as_text(links.conversation_state))
    yield from _list_rows(user_data, path, session_id, as_map(links.workspace_identifier))
    if not any(key.startswith("bubbleId:") for key in keys_by_rowid.values()) or not as_text(links.name):
        for table, key, columns in user_data.side_databases.search_rows(session_id):
            value = msgspec.json.encode(columns)
            yield RawRow(path=locations.SEARCH_DATABASE, table=table, key=key, value=value, volatile=("",))


def _keys_by_rowid(connection: Connection, session_id: str) -> dict[int, str]:
    """Return the keys of a session's rows by rowid, from the key index alone."""
    if not keys.has_table(connection, "cursorDiskKV"):
        return {}
    found: dict[int, str] = {}
    composer_key = f"composerData:{session_id}"
    if rowid := keys.rowid_of(connection, composer_key):
        found[rowid] = composer_key
    for family in ("bubbleId", *keys.RECORD_FAMILIES):
        prefix = f"{family}:{session_id}:"
        for name, rowid in keys.rows_with_prefix(connection, prefix.encode("utf-8", "replace")):
            found[rowid] = prefix + name.decode("utf-8", "replace")
    return found


def _decode_links(value: bytes | None) -> _ComposerLinks:
    try:
        return decode(value, _ComposerLinks) if value else _ComposerLinks()
    except UndecodableError:
        return _ComposerLinks()


def _agent_record_rows(row_loader: RowLoader, session_id: str, state: str) -> Iterator[RawRow]:
    """Return the agent's record of a session: its checkpoint, and all blobs that the root reaches."""
    blob_ids = referenced_ids(decode_state(state) or b"")
    checkpoint_key = f"{keys.CHECKPOINT_FAMILY}:{session_id}"
    for key, data, is_text in row_loader.stored_values([checkpoint_key], _BATCH_BYTES):
        root_id = data.decode("ascii", "replace").strip(' "')
        if len(root_id) == BLOB_ID_DIGITS:
            blob_ids.append(root_id)
        yield RawRow(table="cursorDiskKV", key=key, value=data, is_text=bool(is_text), volatile=("",))

    def fetch(wanted_ids: list[str]) -> Iterator[tuple[str, StoredBlob]]:
        remaining = [keys.BLOB_PREFIX + blob_id for blob_id in wanted_ids]
        while found := row_loader.stored_values(remaining, _BATCH_BYTES):
            for key, data, is_text in found:
                yield key[len(keys.BLOB_PREFIX) :], StoredBlob(data, bool(is_text))
            found_keys = {key for key, _, _ in found}
            remaining = [key for key in remaining if key not in found_keys]

    for blob_id, blob in reachable_blobs(blob_ids, fetch):  # not blanked: their ids are digests
        yield RawRow(
            table="cursorDiskKV",
            key=keys.BLOB_PREFIX + blob_id,
            value=blob.data,
            is_shared=True,
            is_text=blob.is_text,
        )


def tab_rows(user_data: UserData, file: DatabaseFile, tab_id: str) -> Iterator[RawRow]:
    """Return a conversation of the chat panel. One without an id gets an id made of its index."""
    raw = user_data.database(file.path).read(lambda connection: session_lists.raw_tab(connection, tab_id))
    if raw is not None:
        yield _list_entry_row(session_lists.CHAT_KEY, f"tabs[]/{tab_id}", raw)
    if file.storage_id:
        yield from _workspace_file_row(user_data, file.storage_id)


def inline_rows(user_data: UserData, file: DatabaseFile, session_id: str) -> Iterator[RawRow]:
    """Return a conversation in the list of its workspace."""
    found = user_data.database(file.path).read(
        lambda connection: session_lists.inline_entry(connection, session_id)
    )
    if found is not None:
        yield _list_entry_row(session_lists.COMPOSERS_KEY, f"allComposers[]/{session_id}", found[0])
    yield from _workspace_file_row(user_data, file.storage_id)


def prompt_log_rows(user_data: UserData, file: DatabaseFile) -> Iterator[RawRow]:
    """Return the prompt log of a workspace without conversations."""
    values = user_data.database(file.path).read(
        lambda connection: [
            (key, session_lists.read_item(connection, key)) for key in session_lists.PROMPT_LOG_KEYS
        ]
    )
    for key, value in values:
        if value is not None:
            yield RawRow(table="ItemTable", key=key, value=value)
    yield from _workspace_file_row(user_data, file.storage_id)


def _list_entry_row(key: str, part: str, raw: bytes) -> RawRow:
    value, blanked = blank(raw)
    return RawRow(
        table="ItemTable",
        key=key,
        part=part,
        value=value,
        blanked=blanked,
        volatile=_VOLATILE_COMPOSER_FIELDS,
    )


# List entries and the files of workspaces


def _list_rows(
    user_data: UserData, path: Path, session_id: str, identifier: dict[str, Any]
) -> Iterator[RawRow]:
    """Return the session's entries of all lists, and the ``workspace.json`` of its workspaces."""
    database_path = "" if path == user_data.global_path else locations.GLOBAL_DATABASE
    entry = user_data.global_list().entries.get(session_id)
    if entry is not None and entry.is_row:
        columns = user_data.database(user_data.global_path).read(lambda db: _read_header(db, session_id))
        if columns is not None:
            yield _header_row(database_path, session_id, columns)
    elif entry is not None:
        yield _entry_row(database_path, session_lists.HEADERS_KEY, session_id, entry.raw)
    if project := user_data.global_list().projects.get(session_id):
        project_id = as_text(project.get("id"))
        yield _json_row(database_path, session_lists.PROJECTS_KEY, f"[]/{project_id}", project)
        yield _json_row(database_path, session_lists.PROJECT_MEMBERS_KEY, session_id, project_id)
    listed_in = user_data.session_storage_ids(session_id)
    for storage_id in listed_in:
        yield from _membership_rows(user_data, path, storage_id, session_id)
    storage_ids = dict.fromkeys(
        [*listed_in, entry.workspace_id if entry else "", as_text(identifier.get("id"))]
    )
    for candidate in (identifier, entry.header.workspace_identifier if entry else None):
        if isinstance(candidate, dict) and (
            folder := parse_uri(candidate.get("uri") or candidate.get("configPath"))
        ):
            storage_ids |= dict.fromkeys(user_data.folder_storage_ids(folder))
    for storage_id in list(storage_ids):
        if file := user_data.workspace_files().get(storage_id):
            storage_ids |= dict.fromkeys(user_data.folder_storage_ids(file.folder))
    for storage_id in storage_ids:
        yield from _workspace_file_row(user_data, storage_id)


def _membership_rows(user_data: UserData, path: Path, storage_id: str, session_id: str) -> Iterator[RawRow]:
    """Return the entry of a session in the list of a workspace, or that it is open there."""
    file = next(each for each in user_data.databases() if each.storage_id == storage_id)
    lists = user_data.database_lists(file)
    database_path = "" if file.path == path else file.path.relative_to(user_data.root).as_posix()
    entry = lists.entries.get(session_id)
    if entry is None:
        yield _json_row(
            database_path, session_lists.COMPOSERS_KEY, f"selectedComposerIds[]/{session_id}", session_id
        )
        return
    raw = entry.raw
    if not raw:
        found = user_data.database(file.path).read(lambda db: session_lists.inline_entry(db, session_id))
        raw = found[0] if found else b""
    if raw:
        yield _entry_row(database_path, session_lists.COMPOSERS_KEY, session_id, raw)


def _entry_row(path: str, key: str, session_id: str, raw: bytes) -> RawRow:
    value, blanked = blank(raw)
    return RawRow(
        path=path,
        table="ItemTable",
        key=key,
        part=f"allComposers[]/{session_id}",
        value=value,
        blanked=blanked,
        volatile=_VOLATILE_ENTRY_FIELDS,
    )


def _json_row(path: str, key: str, part: str, value: Any) -> RawRow:
    return RawRow(
        path=path, table="ItemTable", key=key, part=part, value=msgspec.json.encode(value), volatile=("",)
    )


def _read_header(connection: Connection, session_id: str) -> dict[str, Any] | None:
    if not keys.has_table(connection, "composerHeaders"):
        return None
    found = connection.execute("select * from composerHeaders where composerId = ?", [session_id])
    column_names = [column[0] for column in found.description]
    row = found.fetchone()
    return dict(zip(column_names, row, strict=True)) if row is not None else None


def _header_row(path: str, session_id: str, columns: dict[str, Any]) -> RawRow:
    header, blanked = blank(as_bytes(columns.get("value")) or b"")
    cells = {
        name: value if value is None or isinstance(value, int | float) else session_lists.cell_text(value)
        for name, value in columns.items()
    }
    if columns.get("value") is not None:
        cells["value"] = session_lists.cell_text(header)
    return RawRow(
        path=path,
        table="composerHeaders",
        key=session_id,
        value=msgspec.json.encode(cells),
        blanked=blanked,
        volatile=_VOLATILE_ENTRY_FIELDS,
    )


def _workspace_file_row(user_data: UserData, storage_id: str) -> Iterator[RawRow]:
    """Return the ``workspace.json`` of a storage id, which names its folder, else the row that does."""
    if storage_id not in user_data.workspace_files():
        return
    name = f"User/workspaceStorage/{storage_id}/workspace.json"
    try:
        with (user_data.root / name).open("rb") as file:
            yield RawRow(path=name, table="", key="", value=file.read(_MAX_FILE_BYTES))
    except OSError:
        yield from _workspace_value_row(user_data, storage_id)


def _workspace_value_row(user_data: UserData, storage_id: str) -> Iterator[RawRow]:
    for file in user_data.databases():
        value = user_data.database_lists(file).workspace_value if file.storage_id == storage_id else None
        if value is not None:
            yield RawRow(
                path=file.path.relative_to(user_data.root).as_posix(),
                table="ItemTable",
                key=session_lists.WORKSPACE_KEY,
                value=value,
                volatile=("",),
            )
