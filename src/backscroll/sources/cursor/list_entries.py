"""Raw rows of one session outside its own rows: its list entries and the files of its workspaces."""

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import msgspec

from backscroll.model import RawRow
from backscroll.readers.sqlite.connection import as_bytes
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import as_text
from backscroll.sources.cursor.uri import parse_uri
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.secret_fields import blank

__all__ = ["SEARCH_DATABASE", "list_rows", "workspace_file_row"]

_GLOBAL_DATABASE = "User/globalStorage/state.vscdb"
SEARCH_DATABASE = "User/globalStorage/conversation-search.db"
_VOLATILE_FIELDS = ("subtitle",)
_MAX_FILE_BYTES = 1024 * 1024


def list_rows(
    user_data: UserData, path: Path, session_id: str, identifier: dict[str, Any]
) -> Iterator[RawRow]:
    """Return the session's entries of all lists, and the ``workspace.json`` of its workspaces."""
    database_path = "" if path == user_data.global_path else _GLOBAL_DATABASE
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
        yield from workspace_file_row(user_data, storage_id)


def workspace_file_row(user_data: UserData, storage_id: str) -> Iterator[RawRow]:
    """Return the ``workspace.json`` of a storage id, which names its folder."""
    if storage_id not in user_data.workspace_files():
        return
    name = f"User/workspaceStorage/{storage_id}/workspace.json"
    try:
        with (user_data.root / name).open("rb") as file:
            yield RawRow(path=name, table="", key="", value=file.read(_MAX_FILE_BYTES))
    except OSError:
        return


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
        volatile=_VOLATILE_FIELDS,
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
        name: value if value is None or isinstance(value, int | float) else _text(value)
        for name, value in columns.items()
    }
    if columns.get("value") is not None:
        cells["value"] = _text(header)
    return RawRow(
        path=path,
        table="composerHeaders",
        key=session_id,
        value=msgspec.json.encode(cells),
        blanked=blanked,
        volatile=_VOLATILE_FIELDS,
    )


def _text(value: object) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace")
