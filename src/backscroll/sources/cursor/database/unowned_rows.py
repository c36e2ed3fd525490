"""Count the rows of a database that belong to no session, and report their problems."""

import re
from collections.abc import Callable, Iterator
from sqlite3 import Connection
from typing import NamedTuple

from msgspec import Raw

from backscroll.errors import DatabaseLockedError, DatabaseUnreadableError
from backscroll.model.message import Origin
from backscroll.model.problem import Fault, Problem
from backscroll.model.stream import Item, RecordCounts
from backscroll.model.text import pluralize
from backscroll.readers.sqlite import as_bytes, problem_code
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, decode
from backscroll.sources.cursor.user_data import DatabaseFile, UserData

_PARSED_KEYS = session_lists.WORKSPACE_KEYS


class _FamilyCount(NamedTuple):
    """Number of rows of one family, and the fault if they cannot be used."""

    family: str
    row_count: int
    is_known: bool = True
    fault: Fault | None = None


class _CheckedItem(NamedTuple):
    """Value of ``ItemTable`` with a known key, and its faults."""

    key: str
    faults: list[Fault]
    is_lost: bool = False


_TableResult = tuple[list[_FamilyCount], list[_CheckedItem]]


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


def _count_disk_rows(user_data: UserData, file: DatabaseFile, sessions: frozenset[str]) -> list[_FamilyCount]:
    session_ids = user_data.row_summaries(file.path).keys()
    copied = (
        frozenset(session_ids & user_data.row_summaries(user_data.global_path).keys())
        if file.storage_id
        else frozenset()
    )
    return user_data.row_loader(file.path).query_keys(lambda db: _count_families(db, sessions, copied))


def _report_counts(
    counts: RecordCounts, path: str, family_counts: list[_FamilyCount], items: list[_CheckedItem]
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
        text = session_lists.cell_text(key)
        if text in known_keys or text == session_lists.CHAT_KEY:
            items.append(_check_item(text, connection))
        elif text.startswith(session_lists.PANE_PREFIX):
            items.append(_CheckedItem(text, []))
        else:
            editor_state_count += 1
    return [_FamilyCount("ItemTable (editor state)", editor_state_count)] if editor_state_count else [], items


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
        return [_FamilyCount("composerHeaders", row_count, False, fault)], []
    rows = keys.readable_rows(connection, "select composerId from composerHeaders not indexed")
    session_ids = [session_lists.cell_text(row[0]) for row in rows]
    orphan_count = sum(session_id not in sessions for session_id in session_ids)
    lost_count = max(0, row_count - len(session_ids))
    counts = []
    if orphan_count:
        fault = Fault(
            "orphaned-record", f"{pluralize(orphan_count, 'row')} of composerHeaders without a known session"
        )
        counts.append(_FamilyCount("composerHeaders", orphan_count, False, fault))
    if lost_count:
        fault = Fault(
            "damaged-database",
            f"{pluralize(lost_count, 'row')} of composerHeaders lost: the table is damaged",
        )
        counts.append(_FamilyCount("composerHeaders", lost_count, False, fault))
    return counts, []


# Rows of ``cursorDiskKV`` by key family

_CLOUD_AGENT = re.compile(
    r"(?:bc-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:", re.IGNORECASE
)
_FAMILY_NAME = re.compile(r"[^:]{1,60}(?=:)|[A-Za-z_.]{1,60}")
_NEXT_KEY = "select key from cursorDiskKV where key >= cast(? as text) and key < x'' order by key limit 1"
_COUNT_RANGE = "select count(*) from cursorDiskKV where key >= cast(? as text) and key < cast(? as text)"


def _count_families(
    connection: Connection, sessions: frozenset[str], copied: frozenset[str]
) -> list[_FamilyCount]:
    """Count all rows except those of ``sessions``. Sessions in ``copied`` are read from another database."""
    if not keys.has_table(connection, "cursorDiskKV"):
        return []
    owned_ids = {session_id.encode() for session_id in sessions}
    copied_ids = {session_id.encode() for session_id in copied}
    return list(_iter_families(connection, owned_ids, copied_ids))


def _iter_families(
    connection: Connection, owned_ids: set[bytes], copied_ids: set[bytes]
) -> Iterator[_FamilyCount]:
    """Return the families in the order of their keys, from the index alone."""
    start = b""
    while found := connection.execute(_NEXT_KEY, [start]).fetchone():
        key: bytes = found[0]
        text = key.decode("utf-8", "replace")
        family = _session_family(text)
        if family:
            yield from _rows_without_unit(connection, family, owned_ids, copied_ids)
            start = family.encode() + b";"
            continue
        prefix = next((prefix for prefix in keys.SHARED_FAMILIES if text.startswith(prefix)), "")
        if prefix:
            end = prefix[:-1].encode() + bytes([ord(prefix[-1]) + 1])
            yield _FamilyCount(keys.SHARED_FAMILIES[prefix], _count_range(connection, prefix.encode(), end))
            start = end
        elif text in keys.SINGLE_KEYS:
            yield _FamilyCount(text, 1)
            start = key + b"\0"
        elif cloud := _CLOUD_AGENT.match(text):
            end = cloud[0][:-1].encode() + b";"
            yield _FamilyCount("cloud agent", _count_range(connection, cloud[0].encode(), end))
            start = end
        else:
            start, family_count = _unknown_family(connection, key, text)
            yield family_count
    yield from _rows_without_key(connection)


def _session_family(text: str) -> str:
    return next(
        (
            family
            for family in ("composerData", "bubbleId", *keys.SESSION_FAMILIES)
            if text.startswith(family + ":")
        ),
        "",
    )


def _rows_without_unit(
    connection: Connection, family: str, owned_ids: set[bytes], copied_ids: set[bytes]
) -> Iterator[_FamilyCount]:
    """Count the rows of a family that belong to no unit: of an unlisted session, or without a session id."""
    prefix = family.encode() + b":"
    is_message = family in ("composerData", "bubbleId")
    ignored_count = orphan_count = 0
    for owner, key, _ in keys.first_keys(connection, family):
        is_bare_id = key == prefix + owner
        is_valid = is_bare_id if family == "composerData" else not (is_bare_id and family == "bubbleId")
        if is_valid and owner in owned_ids:
            continue
        row_count = (
            1 if is_bare_id else _count_range(connection, prefix + owner + b":", prefix + owner + b";")
        )
        if is_message and not (is_valid and owner in copied_ids):
            orphan_count += row_count
        else:
            ignored_count += row_count
    if ignored_count:
        yield _FamilyCount(family, ignored_count)
    if orphan_count:
        yield _FamilyCount(
            family,
            orphan_count,
            False,
            Fault(
                "orphaned-record",
                f"{pluralize(orphan_count, 'key')} of the family '{family}' without a known session",
            ),
        )


def _count_range(connection: Connection, start: bytes, end: bytes) -> int:
    return int(connection.execute(_COUNT_RANGE, [start, end]).fetchone()[0])


def _unknown_family(connection: Connection, key: bytes, text: str) -> tuple[bytes, _FamilyCount]:
    match = _FAMILY_NAME.match(text)
    family = match[0] if match else "?"
    if not text.startswith(family + ":"):
        return key + b"\0", _FamilyCount(family, 1, False)
    end = family.encode() + b";"
    return end, _FamilyCount(family, _count_range(connection, family.encode() + b":", end), False)


def _rows_without_key(connection: Connection) -> Iterator[_FamilyCount]:
    """Count rows with a NULL or binary key. A message in such a row is lost: its session is unknown."""
    empty_count = message_count = 0
    for (value,) in connection.execute("select value from cursorDiskKV where key is null"):
        is_message = _is_message(as_bytes(value))
        empty_count, message_count = empty_count + (not is_message), message_count + is_message
    if empty_count:
        yield _FamilyCount("row without key", empty_count)
    if message_count:
        yield _FamilyCount(
            "row without key",
            message_count,
            False,
            Fault("orphaned-record", f"{pluralize(message_count, 'row')} with a message but without a key"),
        )
    binary = connection.execute("select count(*) from cursorDiskKV where key >= x''").fetchone()[0]
    if binary:
        yield _FamilyCount("binary key", binary, False)


def _is_message(value: bytes | None) -> bool:
    try:
        fields = as_map(decode(Raw(value), object)) if value else {}
    except UndecodableError:
        return bool(value)
    return not fields.keys().isdisjoint({"text", "bubbleId", "composerId", "conversation"})
