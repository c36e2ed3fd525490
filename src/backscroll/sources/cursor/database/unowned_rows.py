"""The account of a database: every row that belongs to no session, counted by what it is."""

from collections.abc import Callable, Iterator
from sqlite3 import Connection
from typing import NamedTuple

from msgspec import Raw

from backscroll.errors import DatabaseLockedError, DatabaseUnreadableError
from backscroll.model import Fault, Item, Origin, Problem, RecordCounts
from backscroll.readers.sqlite import as_bytes, problem_code
from backscroll.sources.cursor.database import key_families, keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, decode
from backscroll.sources.cursor.database.key_families import Count
from backscroll.sources.cursor.user_data import DatabaseFile, UserData

__all__ = ["read"]

_PARSED_KEYS = (session_lists.CHAT_KEY, session_lists.COMPOSERS_KEY, *session_lists.LOG_KEYS)


class _Item(NamedTuple):
    """A value of ``ItemTable`` that is ours to read, and what is wrong with it."""

    key: str
    faults: list[Fault]
    is_lost: bool = False


_Found = tuple[list[Count], list[_Item]]


def read(user_data: UserData, file: DatabaseFile, sessions: frozenset[str]) -> Iterator[Item]:
    """Counts and problems of one database; ``sessions`` have units of their own, which count their rows."""
    counts = RecordCounts()
    path = str(file.path)
    parts: dict[str, Callable[[], _Found]] = {
        "cursorDiskKV": lambda: (_count_disk_rows(user_data, file, sessions), []),
        "ItemTable": lambda: user_data.database(file.path).read(lambda db: _items(db, file)),
        "composerHeaders": lambda: user_data.database(file.path).read(lambda db: _headers(db, sessions)),
    }
    faults: dict[str, Fault] = {}
    for table, count in parts.items():
        try:
            family_counts, items = count()
        except DatabaseLockedError:
            raise
        except DatabaseUnreadableError as error:
            faults[table] = Fault(problem_code(error), str(error))
        else:
            yield from _report_counts(counts, path, family_counts, items)
    if len(faults) == len(parts):
        faults = {"database": faults["ItemTable"]}
    for table, fault in faults.items():
        counts.count(table, "problems", max(1, _row_count(user_data, file, table)))
        yield Problem(Origin(path, table), *fault)
    if user_data.row_loader(file.path).uses_key_copy:
        reason = "the index of its keys is damaged; the table was searched"
        yield Problem(Origin(path, "cursorDiskKV"), "damaged-database", reason)
    yield counts


def _row_count(user_data: UserData, file: DatabaseFile, table: str) -> int:
    """How many rows a table has that cannot be read; 0 when even that cannot be said."""
    if table == "database":
        return 0
    try:
        return user_data.database(file.path).read(lambda db: keys.row_count(db, table))
    except DatabaseUnreadableError:
        return 0


def _count_disk_rows(user_data: UserData, file: DatabaseFile, sessions: frozenset[str]) -> list[Count]:
    here = user_data.sessions(file.path).keys()
    copied = (
        frozenset(here & user_data.sessions(user_data.global_path).keys()) if file.storage else frozenset()
    )
    return user_data.row_loader(file.path).walk(lambda db: key_families.count(db, sessions, copied))


def _report_counts(
    counts: RecordCounts, path: str, family_counts: list[Count], items: list[_Item]
) -> Iterator[Problem]:
    for count in family_counts:
        if count.is_known:
            counts.count(count.family, "ignored", count.number)
            continue
        counts.count(count.family, "problems", count.number)
        fault = count.fault
        if fault is None:
            counts.add_unknown(f"key family {count.family}", count.number)
            fault = Fault("unknown-type", f"unknown key family '{count.family}' ({count.number} rows)")
        yield Problem(Origin(path, count.family), *fault)
    for item in items:
        for fault in item.faults:
            yield Problem(Origin(path, item.key), *fault)
        if item.is_lost:
            counts.count("ItemTable", "problems")
        else:
            counts.count("ItemTable", "parsed" if item.key in _PARSED_KEYS else "ignored")


def _items(connection: Connection, file: DatabaseFile) -> _Found:
    """``ItemTable``: our few keys, and the editor's own state, of which only the number is of interest."""
    if not keys.has_table(connection, "ItemTable"):
        return [], []
    known = session_lists.WORKSPACE_KEYS if file.storage else session_lists.GLOBAL_KEYS
    editor = 0
    items: list[_Item] = []
    for (key,) in connection.execute("select key from ItemTable not indexed").fetchall():
        text = (as_bytes(key) or b"").decode("utf-8", "replace")
        if text in known or text == session_lists.CHAT_KEY:
            items.append(_item(text, connection))
        elif text.startswith(session_lists.PANE_PREFIX):
            items.append(_Item(text, []))
        else:
            editor += 1
    return [Count("ItemTable (editor state)", editor)] if editor else [], items


def _item(key: str, connection: Connection) -> _Item:
    """One of our keys; some hold no JSON by nature."""
    value = session_lists.item(connection, key)
    if key in session_lists.BARE_KEYS or value is None:
        return _Item(key, [])
    try:
        decode(Raw(value), object)
        return _Item(key, session_lists.entry_faults(key, value))
    except UndecodableError as error:
        return _Item(key, [Fault("not-json", f"not readable as JSON: {error}")], is_lost=True)


def _headers(connection: Connection, sessions: frozenset[str]) -> _Found:
    """Rows of the header table that name no session, or that SQLite counts and cannot find."""
    if not keys.has_table(connection, "composerHeaders"):
        return [], []
    names = [row[1] for row in connection.execute("pragma table_info(composerHeaders)")]
    number = keys.row_count(connection, "composerHeaders")
    if b"composerId" not in names or b"value" not in names:
        fault = Fault("unexpected-shape", "the table has no columns composerId and value")
        return [Count("composerHeaders", number, False, fault)], []
    rows = keys.readable(connection, "select composerId from composerHeaders not indexed")
    listed = [_decode_text(row[0]) for row in rows]
    nameless = sum(name not in sessions for name in listed)
    lost = max(0, number - len(listed))
    found = []
    if nameless:
        fault = Fault("orphaned-record", f"{nameless} rows of composerHeaders name no session")
        found.append(Count("composerHeaders", nameless, False, fault))
    if lost:
        fault = Fault("damaged-database", f"{lost} rows of composerHeaders are lost: the table is damaged")
        found.append(Count("composerHeaders", lost, False, fault))
    return found, []


def _decode_text(cell: object) -> str:
    return (as_bytes(cell) or b"").decode("utf-8", "replace")
