"""Plan to add sessions that Cursor has lost to its store, from archived rows.

The list entry is written for the installed version of the store: an entry of an older list becomes a row of
the header table if there is one.
"""

import secrets
from base64 import b64encode
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Raw

from backscroll.errors import ChangeConflictError, TransferError
from backscroll.model.change import ChangePlan, FileChange, Value
from backscroll.model.stream import RawRow
from backscroll.model.transfer import ArchivedSession, SessionPlan
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database import session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing import list_edits
from backscroll.sources.cursor.writing.store_edits import Cell, StoreEdits, check_composer, check_store
from backscroll.sources.secret_fields import blank

_KEY_BYTES = 32
_KEY_PREFIXES = ("tab:", "composer:")  # of units whose conversation is in a list
_LIST_TABLE = "ItemTable"  # rows with several sessions


class RestorePlanner:
    """Adds sessions to the edits of one store."""

    def __init__(self, user_data: UserData, check: Callable[[SessionPlan], None]) -> None:
        self._user_data = user_data
        self._edits = StoreEdits(user_data)
        self._check = check
        self._owners: dict[Cell, str] = {}  # refs

    def add(self, session: ArchivedSession) -> SessionPlan:
        saved = self._edits.savepoint()
        try:
            _check_generation(self._user_data, session)
            check_store(self._user_data, self._edits)
            for unit in session.rows:
                session_id = session_id_of(unit.key)
                _add_session(self._edits, session_id, Path(unit.path), unit.rows(), is_replacing=False)
            edited = self._edits.edited_cells()
            rows = self._edits.rows(edited)
            plan = SessionPlan(
                ChangePlan(
                    what=f"Restore {session.ref}",
                    sessions=(session.ref,),
                    files=self._edits.files(since=saved),
                    rows=rows,
                    tables=self._edits.tables(rows),
                ),
                session.id,
            )
            self._check(plan)
        except BaseException:
            self._edits.roll_back(saved)
            raise
        self._owners |= {cell: session.ref for cell in edited if cell[1] != _LIST_TABLE}
        return plan

    def changes(self) -> ChangePlan:
        if self._edits.rows():
            list_edits.bump_version(self._edits)
        rows = self._edits.rows(owners=self._owners)
        return ChangePlan(what="", files=self._edits.files(), rows=rows, tables=self._edits.tables(rows))

    def close(self) -> None:
        self._user_data.close()


def old_chat_error(session_id: str, verb: str) -> TransferError:
    """Return the error for a chat of 2024: today's Cursor neither shows nor continues it."""
    return TransferError(
        f"{session_id} is a chat of 2024, which newer versions of Cursor do not show. It cannot be {verb}.",
        session_id,
        "unlisted",
        hint=f"Run 'backscroll handoff {session_id}' to continue its work in a new session.",
    )


def _check_generation(user_data: UserData, session: ArchivedSession) -> None:
    """Raise `TransferError` if all rows of a session are in lists that the installed Cursor does not read."""
    is_old = all(unit.key.startswith(_KEY_PREFIXES) for unit in session.rows)
    has_store = locations.is_file(user_data.global_path)
    if is_old and (not has_store or user_data.global_list().source != "none"):
        raise old_chat_error(session.id, "restored")


def session_id_of(key: str) -> str:
    """Return the id of the session in the key of its unit."""
    for prefix in _KEY_PREFIXES:
        key = key.removeprefix(prefix)
    return key


def plan_restore(
    user_data: UserData,
    sessions: Iterable[tuple[str, Path, Callable[[], Iterable[RawRow]]]],
    *,
    is_replacing: bool = False,
    creates_store: bool = False,
) -> StoreEdits:
    """Return the edits that restore sessions: the id, the database of rows without a path, and the rows.

    ``is_replacing`` replaces rows that differ. Raises `ChangeConflictError` if the store contains a session
    with other content.
    """
    edits = StoreEdits(user_data)
    sessions = list(sessions)
    if creates_store and not locations.is_file(user_data.global_path):
        _create_store(edits, [rows for _, _, rows in sessions])
    check_store(user_data, edits)
    for session_id, file, rows in sessions:
        _add_session(edits, session_id, file, rows(), is_replacing=is_replacing)
    if edits.rows():
        list_edits.bump_version(edits)
    return edits


def _create_store(edits: StoreEdits, units: Iterable[Callable[[], Iterable[RawRow]]]) -> None:
    """Create the global database with the session list that the archived rows come from."""
    columns: list[str] = []
    has_list = False
    for rows in units:
        for row in rows():
            if row.table == "composerHeaders" and not columns:
                columns = list(as_map(msgspec.json.decode(row.value or b"{}")))
            has_list = has_list or row.key == session_lists.HEADERS_KEY
    edits.create_store(columns)
    if has_list and not columns:
        empty = b'{"allComposers":[]}'
        edits.put(
            edits.user_data.global_path,
            session_lists.HEADERS_KEY,
            empty,
            table="ItemTable",
            label="session list",
        )


def _add_session(
    edits: StoreEdits, session_id: str, file: Path, rows: Iterable[RawRow], *, is_replacing: bool
) -> None:
    """Add the missing rows and list entries of a session. ``is_replacing`` replaces rows that differ.

    ``file`` is the database of rows without a path. Raises `ChangeConflictError` if rows differ otherwise.
    """
    user_data = edits.user_data
    head: bytes | None = None
    columns: dict[str, Value] = {}
    for row in rows:
        database = user_data.root / row.path if row.path else file
        if not row.table:
            _restore_file(edits, database, row.value or b"")
        elif row.table == "cursorDiskKV":
            _restore_row(edits, session_id, row, is_replacing=is_replacing)
        elif row.table == "composerHeaders":
            columns = as_map(msgspec.json.decode(row.value or b"{}"))
            head = as_text(columns.pop("value", None)).encode() or head
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
        _restore_entry(edits, session_id, head, columns)


def _restore_row(edits: StoreEdits, session_id: str, row: RawRow, *, is_replacing: bool) -> None:
    database = edits.user_data.global_path
    if row.value is None:
        edits.put_empty(database, row.key)
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


def _restore_entry(edits: StoreEdits, session_id: str, head: bytes, columns: dict[str, Value]) -> None:
    """Add the session to the global list. A row that Cursor left when it deleted the session is replaced.

    ``columns`` are the archived ones of its row, if the list was a table.
    """
    fields = decode(head, dict[str, Raw])
    current = edits.header(session_id)
    if current is not None and as_text(as_map(decode(_bytes(current["value"]), object)).get("name")):
        return  # listed already
    identifier = fields.get("workspaceIdentifier")
    workspace_id = as_text(as_map(msgspec.json.decode(bytes(identifier))).get("id")) if identifier else ""
    list_edits.add_global_entry(edits, session_id, fields, workspace_id, columns)


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
