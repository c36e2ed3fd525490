"""Plan to add the sessions of a backup to a store that may contain others.

The rows come from a reduced copy of a user-data folder. It contains the selected sessions and nothing else.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from backscroll.model import RawRow, Unit
from backscroll.model.safekeeping.backup import InsertPlan, RestoreAction, RestoredFile
from backscroll.model.safekeeping.changes import FileChange
from backscroll.readers.sqlite.connection import as_bytes
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, decode
from backscroll.sources.cursor.database.record_types import Composer, Tab
from backscroll.sources.cursor.list_entries import list_rows
from backscroll.sources.cursor.listing import list_units
from backscroll.sources.cursor.raw_rows import inline_rows, tab_rows
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing import list_edits
from backscroll.sources.cursor.writing.restore import add_session
from backscroll.sources.cursor.writing.session_keys import composer_key
from backscroll.sources.cursor.writing.store_edits import StoreEdits
from backscroll.sources.cursor.writing.store_version import check_store
from backscroll.sources.row_inserts import create_file
from backscroll.sources.secret_fields import blank

__all__ = ["plan_insert"]

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
        return _plan(source, target, force=force)
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


def _plan(source: UserData, target: UserData, *, force: bool) -> InsertPlan:
    edits = StoreEdits(target)
    check_store(target, edits)
    rows_by_session, shared = _stored_rows(source)
    results: list[RestoredFile] = []
    for unit in list_units(source):
        if unit.session_id is None:
            continue
        if unit.key.startswith("tab:"):
            results.append(_add_tab(edits, source, unit))
            continue
        own = rows_by_session.get(unit.session_id, []) if unit.key == unit.session_id else []
        rows = [*map(_raw_row, own), *_list_rows(source, unit, own)]
        path = target.root / Path(unit.path).relative_to(source.root)
        results.append(_add(edits, unit.session_id, path, rows, force=force))
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


def _add(edits: StoreEdits, session_id: str, path: Path, rows: list[RawRow], *, force: bool) -> RestoredFile:
    """Add one session to the edits, unless the store has it with other content."""
    database = edits.user_data.global_path
    size = sum(len(row.value or b"") for row in rows)
    differing = [row for row in rows if _differs(edits, database, row)]
    if differing and not force:
        reason = f"the session exists and {len(differing):,} of its rows differ"
        return RestoredFile(str(path), "kept", size, reason, session_id)
    before = edits.change_count
    add_session(edits, session_id, path, rows, is_replacing=force)
    count = edits.change_count - before
    if not count:
        return RestoredFile(str(path), "unchanged", size, session_id=session_id)
    action: RestoreAction = "replace" if differing else "insert"
    return RestoredFile(str(path), action, size, session_id=session_id, row_count=count)


def _add_tab(edits: StoreEdits, source: UserData, unit: Unit) -> RestoredFile:
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
    add_session(edits, tab_id, target, rows)
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
        record = next((row.value for row in own if row.key == composer_key(session_id)), None)
        yield from list_rows(source, Path(unit.path), session_id, _identifier(record))


def _identifier(record: bytes | None) -> dict[str, Any]:
    try:
        return as_map(decode(record or b"{}", Composer).workspace_identifier)
    except UndecodableError:
        return {}
