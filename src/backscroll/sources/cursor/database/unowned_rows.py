"""Counts and problems of the rows of a database that belong to no session."""

from collections.abc import Callable, Iterator
from sqlite3 import Connection
from typing import NamedTuple

from msgspec import Raw

from backscroll.errors import DatabaseLockedError, DatabaseUnreadableError
from backscroll.model import Fault, Item, Origin, Problem, RecordCounts
from backscroll.model.text import pluralize
from backscroll.readers.sqlite.connection import as_bytes, problem_code
from backscroll.sources.cursor.database import key_families, keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, decode
from backscroll.sources.cursor.database.key_families import FamilyCount
from backscroll.sources.cursor.user_data import DatabaseFile, UserData

__all__ = ["read"]

_PARSED_KEYS = (session_lists.CHAT_KEY, session_lists.COMPOSERS_KEY, *session_lists.PROMPT_LOG_KEYS)


class _CheckedItem(NamedTuple):
    """Value of ``ItemTable`` with a known key, and its faults."""

    key: str
    faults: list[Fault]
    is_lost: bool = False


_TableResult = tuple[list[FamilyCount], list[_CheckedItem]]


def read(user_data: UserData, file: DatabaseFile, sessions: frozenset[str]) -> Iterator[Item]:
    """Yield the problems and record counts of a database. Rows of ``sessions`` are counted by their units."""
    counts = RecordCounts()
    path = str(file.path)
    checks: dict[str, Callable[[], _TableResult]] = {
        "cursorDiskKV": lambda: (_count_disk_rows(user_data, file, sessions), []),
        "ItemTable": lambda: user_data.database(file.path).read(lambda db: _check_item_table(db, file)),
        "composerHeaders": lambda: user_data.database(file.path).read(
            lambda db: _check_header_table(db, sessions)
        ),
    }
    faults: dict[str, Fault] = {}
    for table, check in checks.items():
        try:
            family_counts, items = check()
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError as error:
            faults[table] = Fault(problem_code(error), str(error))
        else:
            yield from _report_counts(counts, path, family_counts, items)
    if len(faults) == len(checks):
        faults = {"database": faults["ItemTable"]}
    for table, fault in faults.items():
        counts.count(table, "problems", max(1, _row_count(user_data, file, table)))
        yield Problem(Origin(path, table), *fault)
    if user_data.row_loader(file.path).uses_key_copy:
        reason = "the key index is damaged; the keys were read from the table"
        yield Problem(Origin(path, "cursorDiskKV"), "damaged-database", reason)
    yield counts


def _row_count(user_data: UserData, file: DatabaseFile, table: str) -> int:
    """Count the rows of an unreadable table; 0 if they cannot be counted."""
    if table == "database":
        return 0
    try:
        return user_data.database(file.path).read(lambda db: keys.row_count(db, table))
    except DatabaseUnreadableError:
        return 0


def _count_disk_rows(user_data: UserData, file: DatabaseFile, sessions: frozenset[str]) -> list[FamilyCount]:
    session_ids = user_data.row_summaries(file.path).keys()
    copied = (
        frozenset(session_ids & user_data.row_summaries(user_data.global_path).keys())
        if file.storage_id
        else frozenset()
    )
    return user_data.row_loader(file.path).query_keys(
        lambda db: key_families.count_families(db, sessions, copied)
    )


def _report_counts(
    counts: RecordCounts, path: str, family_counts: list[FamilyCount], items: list[_CheckedItem]
) -> Iterator[Problem]:
    for count in family_counts:
        if count.is_known:
            counts.count(count.family, "ignored", count.row_count)
            continue
        counts.count(count.family, "problems", count.row_count)
        fault = count.fault
        if fault is None:
            counts.add_unknown(f"key family {count.family}", count.row_count)
            fault = Fault(
                "unknown-type", f"unknown key family '{count.family}' ({pluralize(count.row_count, 'row')})"
            )
        yield Problem(Origin(path, count.family), *fault)
    for item in items:
        for fault in item.faults:
            yield Problem(Origin(path, item.key), *fault)
        if item.is_lost:
            counts.count("ItemTable", "problems")
        else:
            counts.count("ItemTable", "parsed" if item.key in _PARSED_KEYS else "ignored")


def _check_item_table(connection: Connection, file: DatabaseFile) -> _TableResult:
    """Check the known keys of ``ItemTable``. All other keys are editor state and only counted."""
    if not keys.has_table(connection, "ItemTable"):
        return [], []
    known_keys = session_lists.WORKSPACE_KEYS if file.storage_id else session_lists.GLOBAL_KEYS
    editor_state_count = 0
    items: list[_CheckedItem] = []
    for (key,) in connection.execute("select key from ItemTable not indexed").fetchall():
        text = (as_bytes(key) or b"").decode("utf-8", "replace")
        if text in known_keys or text == session_lists.CHAT_KEY:
            items.append(_check_item(text, connection))
        elif text.startswith(session_lists.PANE_PREFIX):
            items.append(_CheckedItem(text, []))
        else:
            editor_state_count += 1
    return [FamilyCount("ItemTable (editor state)", editor_state_count)] if editor_state_count else [], items


def _check_item(key: str, connection: Connection) -> _CheckedItem:
    """Check that the value of a known key is JSON, unless its format is plain text."""
    value = session_lists.read_item(connection, key)
    if key in session_lists.NON_JSON_KEYS or value is None:
        return _CheckedItem(key, [])
    try:
        decode(Raw(value), object)
        return _CheckedItem(key, session_lists.entry_faults(key, value))
    except UndecodableError as error:
        return _CheckedItem(key, [error.fault("the value")], is_lost=True)


def _check_header_table(connection: Connection, sessions: frozenset[str]) -> _TableResult:
    """Count the rows of the header table without a known session, and the rows that SQLite cannot read."""
    if not keys.has_table(connection, "composerHeaders"):
        return [], []
    columns = [row[1] for row in connection.execute("pragma table_info(composerHeaders)")]
    row_count = keys.row_count(connection, "composerHeaders")
    if b"composerId" not in columns or b"value" not in columns:
        fault = Fault("unexpected-shape", "the table has no column composerId or no column value")
        return [FamilyCount("composerHeaders", row_count, False, fault)], []
    rows = keys.readable_rows(connection, "select composerId from composerHeaders not indexed")
    session_ids = [_decode_text(row[0]) for row in rows]
    orphan_count = sum(session_id not in sessions for session_id in session_ids)
    lost_count = max(0, row_count - len(session_ids))
    counts = []
    if orphan_count:
        fault = Fault(
            "orphaned-record", f"{pluralize(orphan_count, 'row')} of composerHeaders without a known session"
        )
        counts.append(FamilyCount("composerHeaders", orphan_count, False, fault))
    if lost_count:
        fault = Fault(
            "damaged-database",
            f"{pluralize(lost_count, 'row')} of composerHeaders lost: the table is damaged",
        )
        counts.append(FamilyCount("composerHeaders", lost_count, False, fault))
    return counts, []


def _decode_text(cell: object) -> str:
    return (as_bytes(cell) or b"").decode("utf-8", "replace")
