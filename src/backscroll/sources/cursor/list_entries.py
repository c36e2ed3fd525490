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
from backscroll.sources.cursor.uri import address
from backscroll.sources.cursor.user_data import Library
from backscroll.sources.secret_fields import blank

__all__ = ["SEARCH", "rows", "workspace_file"]

_GLOBAL = "User/globalStorage/state.vscdb"
SEARCH = "User/globalStorage/conversation-search.db"
_PASSING = ("subtitle",)
_LARGEST_FILE = 1024 * 1024


def rows(library: Library, path: Path, session: str, identifier: dict[str, Any]) -> Iterator[RawRow]:
    """The entries of all lists that name a session, and the folders of the workspaces it belongs to."""
    here = "" if path == library.global_path else _GLOBAL
    entry = library.heads().entries.get(session)
    if entry is not None and entry.is_row:
        columns = library.database(library.global_path).read(lambda db: _header(db, session))
        if columns is not None:
            yield _header_row(here, session, columns)
    elif entry is not None:
        yield _entry(here, session_lists.HEADS_KEY, session, entry.raw)
    if project := library.heads().projects.get(session):
        name = as_text(project.get("id"))
        yield _json(here, session_lists.PROJECTS_KEY, f"[]/{name}", project)
        yield _json(here, session_lists.MEMBERS_KEY, session, name)
    storages = library.members(session)
    for storage in storages:
        yield from _membership(library, path, storage, session)
    known = dict.fromkeys([*storages, entry.workspace_id if entry else "", as_text(identifier.get("id"))])
    for claim in (identifier, entry.head.workspace_identifier if entry else None):
        if isinstance(claim, dict) and (folder := address(claim.get("uri") or claim.get("configPath"))):
            known |= dict.fromkeys(library.storage_ids(folder))
    for storage in list(known):
        if note := library.folders().get(storage):
            known |= dict.fromkeys(library.storage_ids(note.address))
    for storage in known:
        yield from workspace_file(library, storage)


def workspace_file(library: Library, storage: str) -> Iterator[RawRow]:
    """The file that says which folder a workspace id stands for."""
    if storage not in library.folders():
        return
    name = f"User/workspaceStorage/{storage}/workspace.json"
    try:
        with (library.root / name).open("rb") as file:
            yield RawRow(path=name, table="", key="", value=file.read(_LARGEST_FILE))
    except OSError:
        return


def _membership(library: Library, path: Path, storage: str, session: str) -> Iterator[RawRow]:
    """A workspace's own word for it that a session is its own, or is open in it."""
    mark = next(each for each in library.databases() if each.storage == storage)
    lists = library.lists(mark)
    here = "" if mark.path == path else mark.path.relative_to(library.root).as_posix()
    entry = lists.entries.get(session)
    if entry is None:
        yield _json(here, session_lists.COMPOSERS_KEY, f"selectedComposerIds[]/{session}", session)
        return
    raw = entry.raw
    if not raw:
        found = library.database(mark.path).read(lambda db: session_lists.inline_entry(db, session))
        raw = found[0] if found else b""
    if raw:
        yield _entry(here, session_lists.COMPOSERS_KEY, session, raw)


def _entry(path: str, key: str, session: str, raw: bytes) -> RawRow:
    value, blanked = blank(raw)
    return RawRow(
        path=path,
        table="ItemTable",
        key=key,
        part=f"allComposers[]/{session}",
        value=value,
        blanked=blanked,
        volatile=_PASSING,
    )


def _json(path: str, key: str, part: str, value: Any) -> RawRow:
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
    head, blanked = blank(as_bytes(columns.get("value")) or b"")
    told = {
        name: value if value is None or isinstance(value, int | float) else _text(value)
        for name, value in columns.items()
    }
    if columns.get("value") is not None:
        told["value"] = _text(head)
    return RawRow(
        path=path,
        table="composerHeaders",
        key=session,
        value=msgspec.json.encode(told),
        blanked=blanked,
        volatile=_PASSING,
    )


def _text(value: object) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace")
