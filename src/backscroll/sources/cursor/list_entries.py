"""What lists of sessions, and files beside databases, say of one session: its entries, never a whole list."""

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import msgspec

from backscroll.model import RawRow
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import as_text
from backscroll.sources.cursor.uri import parse_uri
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.secret_fields import blank

__all__ = ["SEARCH_DATABASE", "list_rows", "workspace_file"]

_GLOBAL_DATABASE = "User/globalStorage/state.vscdb"
SEARCH_DATABASE = "User/globalStorage/conversation-search.db"
_VOLATILE_FIELDS = ("subtitle",)
_MAX_FILE_BYTES = 1024 * 1024


def list_rows(user_data: UserData, path: Path, session: str, identifier: dict[str, Any]) -> Iterator[RawRow]:
    """The entries of all lists that name a session, and the folders of the workspaces it belongs to."""
    here = "" if path == user_data.global_path else _GLOBAL_DATABASE
    entry = user_data.global_list().entries.get(session)
    if entry is not None and entry.is_row:
        columns = user_data.database(user_data.global_path).read(lambda db: _header(db, session))
        if columns is not None:
            yield _header_row(here, session, columns)
    elif entry is not None:
        yield _entry_row(here, session_lists.HEADERS_KEY, session, entry.raw)
    if project := user_data.global_list().projects.get(session):
        name = as_text(project.get("id"))
        yield _json_part(here, session_lists.PROJECTS_KEY, f"[]/{name}", project)
        yield _json_part(here, session_lists.MEMBERS_KEY, session, name)
    storages = user_data.members(session)
    for storage in storages:
        yield from _membership_rows(user_data, path, storage, session)
    known = dict.fromkeys([*storages, entry.workspace_id if entry else "", as_text(identifier.get("id"))])
    for claim in (identifier, entry.header.workspace_identifier if entry else None):
        if isinstance(claim, dict) and (folder := parse_uri(claim.get("uri") or claim.get("configPath"))):
            known |= dict.fromkeys(user_data.storage_ids(folder))
    for storage in list(known):
        if note := user_data.folders().get(storage):
            known |= dict.fromkeys(user_data.storage_ids(note.folder))
    for storage in known:
        yield from workspace_file(user_data, storage)


def workspace_file(user_data: UserData, storage: str) -> Iterator[RawRow]:
    """The file that says which folder a workspace id stands for."""
    if storage not in user_data.folders():
        return
    name = f"User/workspaceStorage/{storage}/workspace.json"
    try:
        with (user_data.root / name).open("rb") as file:
            yield RawRow(path=name, table="", key="", value=file.read(_MAX_FILE_BYTES))
    except OSError:
        return


def _membership_rows(user_data: UserData, path: Path, storage: str, session: str) -> Iterator[RawRow]:
    """A workspace's own word for it that a session is its own, or is open in it."""
    file = next(each for each in user_data.databases() if each.storage == storage)
    lists = user_data.lists(file)
    here = "" if file.path == path else file.path.relative_to(user_data.root).as_posix()
    entry = lists.entries.get(session)
    if entry is None:
        yield _json_part(here, session_lists.COMPOSERS_KEY, f"selectedComposerIds[]/{session}", session)
        return
    raw = entry.raw
    if not raw:
        found = user_data.database(file.path).read(lambda db: session_lists.inline_entry(db, session))
        raw = found[0] if found else b""
    if raw:
        yield _entry_row(here, session_lists.COMPOSERS_KEY, session, raw)


def _entry_row(path: str, key: str, session: str, raw: bytes) -> RawRow:
    value, blanked = blank(raw)
    return RawRow(
        path=path,
        table="ItemTable",
        key=key,
        part=f"allComposers[]/{session}",
        value=value,
        blanked=blanked,
        volatile=_VOLATILE_FIELDS,
    )


def _json_part(path: str, key: str, part: str, value: Any) -> RawRow:
    return RawRow(
        path=path, table="ItemTable", key=key, part=part, value=msgspec.json.encode(value), volatile=("",)
    )


def _header(connection: Connection, session: str) -> dict[str, Any] | None:
    if not keys.has_table(connection, "composerHeaders"):
        return None
    found = connection.execute("select * from composerHeaders where composerId = ?", [session])
    names = [column[0] for column in found.description]
    row = found.fetchone()
    return dict(zip(names, row, strict=True)) if row is not None else None


def _header_row(path: str, session: str, columns: dict[str, Any]) -> RawRow:
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
        key=session,
        value=msgspec.json.encode(cells),
        blanked=blanked,
        volatile=_VOLATILE_FIELDS,
    )


def _text(value: object) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace")
