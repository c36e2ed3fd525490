"""Plan to add sessions to a store: one that Cursor lost, from archived rows, or those of a backup.

The list entry is written for the installed version of the store: an entry of an older list becomes a row of
the header table if there is one.
"""

import secrets
import sqlite3
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from backscroll.errors import ChangeConflictError
from backscroll.model.backup import InsertPlan, RestoreAction, RestoredFile
from backscroll.model.change import FileChange
from backscroll.model.stream import RawRow
from backscroll.model.unit import Unit
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode
from backscroll.sources.cursor.database.record_types import Composer, Tab
from backscroll.sources.cursor.raw_rows import inline_rows, list_rows, tab_rows
from backscroll.sources.cursor.reader import list_units
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing import list_edits
from backscroll.sources.cursor.writing.store_edits import StoreEdits, check_composer, check_store
from backscroll.sources.row_inserts import create_file
from backscroll.sources.secret_fields import blank

_KEY_BYTES = 32


def plan_restore(user_data: UserData, sessions: Iterable[tuple[str, Path, Iterable[RawRow]]]) -> StoreEdits:
    """Return the edits that restore sessions: the id, the database of rows without a path, and the rows.

    Raises `ChangeConflictError` if the store contains a session with other content.
    """
    edits = StoreEdits(user_data)
    check_store(user_data, edits)
    for session_id, file, rows in sessions:
        _add_session(edits, session_id, file, rows)
    if edits.rows():
        list_edits.bump_version(edits)
    return edits


def _add_session(
    edits: StoreEdits, session_id: str, file: Path, rows: Iterable[RawRow], *, is_replacing: bool = False
) -> None:
    """Add the missing rows and list entries of a session. ``is_replacing`` replaces rows that differ.

    ``file`` is the database of rows without a path. Raises `ChangeConflictError` if rows differ otherwise.
    """
    user_data = edits.user_data
    head: bytes | None = None
    for row in rows:
        database = user_data.root / row.path if row.path else file
        if not row.table:
            _restore_file(edits, database, row.value or b"")
        elif row.table == "cursorDiskKV":
            _restore_row(edits, session_id, row, is_replacing=is_replacing)
        elif row.table == "composerHeaders":
            columns = as_map(msgspec.json.decode(row.value or b"{}"))
            head = as_text(columns.get("value")).encode() or head
        elif row.part == f"allComposers[]/{session_id}" and row.key == session_lists.HEADERS_KEY:
            head = row.value or head
        elif row.part == f"allComposers[]/{session_id}" and row.key == session_lists.COMPOSERS_KEY:
            head = head or row.value
            if row.value is not None:
                _ensure_database(edits, database)
                list_edits.add_workspace_entry(edits, database, session_id, row.value)
        elif row.part.startswith("tabs[]/") and row.key == session_lists.CHAT_KEY and row.value is not None:
            _ensure_database(edits, database)
            list_edits.add_tab(edits, database, session_id, row.value)
    if head is not None:
        _restore_entry(edits, session_id, head)


def _restore_row(edits: StoreEdits, session_id: str, row: RawRow, *, is_replacing: bool) -> None:
    database = edits.user_data.global_path
    if row.value is None:
        return
    current = edits.value(database, row.key)
    if current is not None and blank(current)[0] == blank(row.value)[0]:
        return
    value = _with_new_keys(row.value) if row.blanked else row.value
    if row.key == f"composerData:{session_id}":
        check_composer(edits.user_data, value)
    if current is None or is_replacing:
        label = "session" if row.key.startswith("composerData:") else "message"
        edits.put(database, row.key, value, label=label, is_text=row.is_text)
    elif not row.is_shared and row.key.startswith(("composerData:", "bubbleId:")):
        raise ChangeConflictError(
            f"Cursor has the session {session_id} with other content. Nothing was changed.", database
        )


def _with_new_keys(value: bytes) -> bytes:
    """Fill in encryption keys that the archive does not keep. Cursor accepts new ones."""
    try:
        fields = decode(value, dict[str, Raw])
    except UndecodableError:
        return value
    for name, raw in fields.items():
        if name.endswith("ncryptionKey") and bytes(raw) == b'""':
            key = b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
            fields[name] = Raw(msgspec.json.encode(key))
    return msgspec.json.encode(fields)


def _restore_entry(edits: StoreEdits, session_id: str, head: bytes) -> None:
    """Add the session to the global list. A row that Cursor left when it deleted the session is replaced."""
    fields = decode(head, dict[str, Raw])
    current = edits.header(session_id)
    if current is not None and as_text(as_map(decode(_bytes(current["value"]), object)).get("name")):
        return  # listed already
    identifier = fields.get("workspaceIdentifier")
    workspace_id = as_text(as_map(msgspec.json.decode(bytes(identifier))).get("id")) if identifier else ""
    list_edits.add_global_entry(edits, session_id, fields, workspace_id)


def _restore_file(edits: StoreEdits, path: Path, content: bytes) -> None:
    """Restore the ``workspace.json`` of a workspace, with an empty database."""
    if path.exists():
        return
    edits.add_file(
        FileChange(
            path=path,
            content=lambda: [content],
            before=None,
            size=len(content),
            label="workspace",
            is_left_if_changed=True,
        )
    )
    _ensure_database(edits, path.with_name("state.vscdb"))


def _ensure_database(edits: StoreEdits, path: Path) -> None:
    if not path.exists() and not edits.is_new(path):
        edits.create_database(path)


def _bytes(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else b"{}"


# Sessions of a backup. The rows come from a copy of a user-data folder that has nothing but these sessions.

_CONTENT_FAMILIES = ("composerData:", "bubbleId:")


class _StoredRow(NamedTuple):
    key: str
    value: bytes | None
    is_text: bool


def plan_insert(copy: Path, root: Path, *, force: bool) -> InsertPlan:
    """Plan to add all sessions of a reduced copy to the store at a root."""
    if not locations.is_file(locations.global_database(root)):
        return _create_files(copy, root)
    source, target = UserData(copy), UserData(root)
    try:
        return _plan_inserts(source, target, force=force)
    finally:
        source.close()
        target.close()


def _create_files(copy: Path, root: Path) -> InsertPlan:
    """Plan to create the store. Files that exist are kept."""
    results: list[RestoredFile] = []
    files: list[FileChange] = []
    for path in sorted(path for path in copy.rglob("*") if path.is_file()):
        target = root / path.relative_to(copy)
        if target.exists():
            results.append(RestoredFile(str(target), "kept", path.stat().st_size, "exists and differs"))
        else:
            result, change = create_file(path, target)
            results.append(result)
            files.append(change)
    return InsertPlan(results=tuple(results), files=tuple(files))


def _plan_inserts(source: UserData, target: UserData, *, force: bool) -> InsertPlan:
    edits = StoreEdits(target)
    check_store(target, edits)
    rows_by_session, shared = _stored_rows(source)
    results: list[RestoredFile] = []
    for unit in list_units(source):
        if unit.session_id is None:
            continue
        if unit.key.startswith("tab:"):
            results.append(_insert_tab(edits, source, unit))
            continue
        own = rows_by_session.get(unit.session_id, []) if unit.key == unit.session_id else []
        rows = [*map(_raw_row, own), *_list_rows(source, unit, own)]
        path = target.root / Path(unit.path).relative_to(source.root)
        results.append(_insert_session(edits, unit.session_id, path, rows, force=force))
    if any(result.action in ("insert", "replace") for result in results):
        for row in shared:
            if edits.value(target.global_path, row.key) is None and row.value is not None:
                edits.put(target.global_path, row.key, row.value, label="blob", is_text=row.is_text)
        list_edits.bump_version(edits)
    search = locations.search_database(target.root)
    copied_search = locations.search_database(source.root)
    files = list(edits.files())
    if locations.is_file(copied_search) and not search.exists():
        result, change = create_file(copied_search, search)
        results.append(result)
        files.append(change)
    return InsertPlan(results=tuple(results), files=tuple(files), rows=edits.rows())


def _insert_session(
    edits: StoreEdits, session_id: str, path: Path, rows: list[RawRow], *, force: bool
) -> RestoredFile:
    """Add one session to the edits, unless the store has it with other content."""
    database = edits.user_data.global_path
    size = sum(len(row.value or b"") for row in rows)
    differing = [row for row in rows if _differs(edits, database, row)]
    if differing and not force:
        reason = f"the session exists and {len(differing):,} of its rows differ"
        return RestoredFile(str(path), "kept", size, reason, session_id)
    before = edits.change_count
    _add_session(edits, session_id, path, rows, is_replacing=force)
    count = edits.change_count - before
    if not count:
        return RestoredFile(str(path), "unchanged", size, session_id=session_id)
    action: RestoreAction = "replace" if differing else "insert"
    return RestoredFile(str(path), action, size, session_id=session_id, row_count=count)


def _insert_tab(edits: StoreEdits, source: UserData, unit: Unit) -> RestoredFile:
    """Add a conversation of the chat panel. Some have no id, so their content is compared."""
    tab_id, path = unit.key.removeprefix("tab:"), Path(unit.path)
    target = edits.user_data.root / path.relative_to(source.root)
    file = next(one for one in source.databases() if one.path == path)
    rows = list(tab_rows(source, file, tab_id))
    size = sum(len(row.value or b"") for row in rows)
    current = _tabs(edits.user_data, target)
    own = _tabs(source, path)[tab_id]
    if own in current.values():
        return RestoredFile(str(target), "unchanged", size, session_id=unit.session_id)
    if tab_id in current:
        reason = "the chat panel has another conversation with this id"
        return RestoredFile(str(target), "kept", size, reason, unit.session_id)
    before = edits.change_count
    _add_session(edits, tab_id, target, rows)
    count = edits.change_count - before
    return RestoredFile(str(target), "insert", size, session_id=unit.session_id, row_count=count)


def _tabs(user_data: UserData, path: Path) -> dict[str, bytes]:
    """Return the conversations of a chat panel, by id or index."""
    if not locations.is_file(path):
        return {}
    value = user_data.database(path).read(lambda db: session_lists.read_item(db, session_lists.CHAT_KEY))
    tabs = session_lists.raw_tabs(value or b"null")
    return {session_lists.tab_id_of(decode(raw, Tab), index): bytes(raw) for index, raw in enumerate(tabs)}


def _differs(edits: StoreEdits, database: Path, row: RawRow) -> bool:
    """Return whether the store has other content for a row. Encryption keys are not compared."""
    if row.table != "cursorDiskKV" or not row.key.startswith(_CONTENT_FAMILIES):
        return False
    current = edits.value(database, row.key)
    if current is None or current == row.value:
        return False
    return blank(current)[0] != blank(row.value or b"")[0]


def _stored_rows(source: UserData) -> tuple[dict[str, list[_StoredRow]], list[_StoredRow]]:
    """Return the rows of each session, and those that belong to none."""
    rows = [row for file in source.databases() for row in source.database(file.path).read(_read_rows)]
    ids = {unit.session_id for unit in list_units(source) if unit.session_id is not None}
    found: dict[str, list[_StoredRow]] = {}
    shared: list[_StoredRow] = []
    for row in rows:
        owner = next((part for part in row.key.split(":", 3)[:3] if part in ids), None)
        (found.setdefault(owner, []) if owner is not None else shared).append(row)
    return found, shared


def _read_rows(connection: sqlite3.Connection) -> list[_StoredRow]:
    if not keys.has_table(connection, "cursorDiskKV"):
        return []
    rows = connection.execute(
        "select key, value, typeof(value) = 'text' from cursorDiskKV where key is not null"
    )
    return [
        _StoredRow((as_bytes(key) or b"").decode("utf-8", "replace"), as_bytes(value), bool(is_text))
        for key, value, is_text in rows
    ]


def _raw_row(row: _StoredRow) -> RawRow:
    blanked: tuple[str, ...] = ()
    if row.value is not None:
        without_keys, names = blank(row.value)
        blanked = names if without_keys == row.value else ()  # the backup may contain the keys
    return RawRow(table="cursorDiskKV", key=row.key, value=row.value, is_text=row.is_text, blanked=blanked)


def _list_rows(source: UserData, unit: Unit, own: Iterable[_StoredRow]) -> Iterator[RawRow]:
    """Yield the entries of a session in all lists, and the files of its workspaces."""
    file = next((one for one in source.databases() if str(one.path) == unit.path), None)
    session_id = unit.session_id or ""
    if file is not None and unit.key.startswith("composer:"):
        yield from inline_rows(source, file, session_id)
    elif unit.key == session_id:
        record = next((row.value for row in own if row.key == f"composerData:{session_id}"), None)
        yield from list_rows(source, Path(unit.path), session_id, _identifier(record))


def _identifier(record: bytes | None) -> dict[str, Any]:
    try:
        return as_map(decode(record or b"{}", Composer).workspace_identifier)
    except UndecodableError:
        return {}
