"""``__store.db``, the database of Claude Code 0.2 (spring 2025).

A row of ``base_messages`` corresponds to a line of a transcript. Its text is in a row of ``user_messages``
or ``assistant_messages`` with the same uuid.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from backscroll.errors import BackscrollError, DatabaseNotFoundError
from backscroll.model import RawRow, Unit
from backscroll.readers import lenient_json
from backscroll.readers.sqlite import Database, as_bytes
from backscroll.sources.claude_code.folders import NAME, STORE

__all__ = ["MESSAGES", "SUMMARIES", "TEXT_TABLES", "Rest", "records", "rest", "rows", "summaries", "units"]

MESSAGES = "base_messages"
SUMMARIES = "conversation_summaries"
TEXT_TABLES = ("user_messages", "assistant_messages")
_REQUIRED_COLUMNS = {"uuid", "session_id", "message_type"}
_KNOWN_TABLES = {MESSAGES, SUMMARIES, *TEXT_TABLES}
_MIGRATIONS = "__drizzle_migrations"
BATCH_SIZE = 100  # rows

# Columns and the corresponding fields of a transcript line.
_FIELDS = {
    "message_type": "type",
    "uuid": "uuid",
    "parent_uuid": "parentUuid",
    "session_id": "sessionId",
    "timestamp": "timestamp",
    "cwd": "cwd",
    "user_type": "userType",
    "version": "version",
    "isSidechain": "isSidechain",
    "cost_usd": "costUSD",
    "duration_ms": "durationMs",
    "is_api_error_message": "isApiErrorMessage",
}
_FLAGS = ("isSidechain", "isApiErrorMessage")

_Columns = dict[str, Any]


class Rest(NamedTuple):
    """Rows of a database that belong to no session."""

    tables: list[str]  # all of them
    is_known: bool  # whether they are the tables of version 0.2
    lost: dict[str, int]  # rows without a session, by table
    summaries: int  # of messages that do not exist
    migrations: int


def units(root: str, path: str, token: str) -> Iterator[Unit]:
    """Return a unit per session and one for the rest. An unreadable database is one unit that is retried."""
    try:
        with Database(Path(path)) as database:
            found = database.read(_sessions)
    except DatabaseNotFoundError:
        return
    except (BackscrollError, sqlite3.Error):
        yield Unit(NAME, root, path, kind=STORE)
        return
    for id_, number, print_ in found:
        yield Unit(NAME, root, path, id_, print_, number, "session", id_)
    yield Unit(NAME, root, path, "", token, 1, STORE)


def records(path: Path, session: str) -> Iterator[tuple[str, _Columns]]:
    """Yield the messages of a session as transcript lines, in the order of the rows.

    Each comes with the key of the row that has its text. Raises `BackscrollError` or `sqlite3.Error`.
    """
    with Database(path) as database:
        for base, words in _fetched(database, session):
            table, columns = words[0] if words else (MESSAGES, {})
            yield _key(table, base["uuid"]), _line(base, columns)


def summaries(path: Path, session: str) -> list[tuple[str, str]]:
    """Return summaries of a session's messages: message id and text. Raises as `records`."""
    with Database(path) as database:
        return [(row["leaf_uuid"], row["summary"]) for row in database.read(lambda db: _named(db, session))]


def rows(path: Path, session: str) -> Iterator[RawRow]:
    """Yield the rows of a session. Raises as `records`."""
    with Database(path) as database:
        for base, words in _fetched(database, session):
            yield _row(MESSAGES, base["uuid"], base)
            for table, columns in words:
                yield _row(table, base["uuid"], columns)
        for columns in database.read(lambda db: _named(db, session)):
            yield _row(SUMMARIES, columns["leaf_uuid"], columns)


def rest(path: Path) -> Rest:
    """Return the rows that belong to no session. Raises as `records`."""
    with Database(path) as database:
        return database.read(_rest)


def _sessions(db: sqlite3.Connection) -> list[tuple[str, int, str]]:
    """Return sessions with their message count and fingerprint."""
    if not _is_known(db):
        return []
    columns, joins = ["count(*)", "max(b.rowid)"], ""
    for table in (name for name in TEXT_TABLES if name in _tables(db)):
        columns.append(f"count({table}.uuid)")
        joins += f" left join {table} on {table}.uuid = b.uuid"
    if SUMMARIES in _tables(db):
        columns.append("max(s.updated_at)")
        joins += f" left join {SUMMARIES} s on s.leaf_uuid = b.uuid"
    found = db.execute(
        f"select b.session_id, {', '.join(columns)} from {MESSAGES} b{joins}"  # noqa: S608 - our own names
        " where length(b.session_id) group by b.session_id order by max(b.rowid)"
    )
    return [(_text(id_), counts[0], "-".join(str(one) for one in counts)) for id_, *counts in found]


def _fetched(database: Database, session: str) -> Iterator[tuple[_Columns, list[tuple[str, _Columns]]]]:
    """Yield each message of a session with the rows of its text, by table."""
    places = database.read(
        lambda db: (
            db.execute(
                f"select rowid from {MESSAGES} where session_id = ? order by rowid",  # noqa: S608
                [session],
            ).fetchall()
            if _is_known(db)
            else []
        )
    )
    for start in range(0, len(places), BATCH_SIZE):
        some = [place for (place,) in places[start : start + BATCH_SIZE]]
        yield from database.read(partial(_messages, places=some))


def _messages(
    db: sqlite3.Connection, places: Sequence[int]
) -> list[tuple[_Columns, list[tuple[str, _Columns]]]]:
    marks = ", ".join("?" * len(places))
    found = _columns(db, f"select rowid, * from {MESSAGES} where rowid in ({marks}) order by rowid", places)  # noqa: S608
    words: dict[str, list[tuple[str, _Columns]]] = {}
    for table in (name for name in TEXT_TABLES if name in _tables(db)):
        query = f"select * from {table} where uuid in ({marks})"  # noqa: S608 - our own names
        for columns in _columns(db, query, [row["uuid"] for row in found]):
            words.setdefault(columns["uuid"], []).append((table, columns))
    return [(row, words.get(row["uuid"], [])) for row in found]


def _named(db: sqlite3.Connection, session: str) -> list[_Columns]:
    if not _is_known(db) or SUMMARIES not in _tables(db):
        return []
    query = (
        f"select s.* from {SUMMARIES} s join {MESSAGES} b on b.uuid = s.leaf_uuid"  # noqa: S608
        " where b.session_id = ? and s.summary is not null order by b.rowid"
    )
    return _columns(db, query, [session])


def _rest(db: sqlite3.Connection) -> Rest:
    tables = _tables(db)
    if not _is_known(db):
        return Rest(tables, is_known=False, lost={}, summaries=0, migrations=0)
    lost = {MESSAGES: _count(db, f"{MESSAGES} where session_id is null or session_id = ''")}
    without = f"not exists (select 1 from {MESSAGES} b where b.uuid ="  # noqa: S608 - our own names
    for table in (name for name in TEXT_TABLES if name in tables):
        lost[table] = _count(db, f"{table} where {without} {table}.uuid)")
    named = _count(db, f"{SUMMARIES} where {without} leaf_uuid)") if SUMMARIES in tables else 0
    migrations = _count(db, _MIGRATIONS) if _MIGRATIONS in tables else 0
    for table in set(tables) - _KNOWN_TABLES - {_MIGRATIONS}:
        lost[table] = _count(db, '"' + table.replace('"', '""') + '"')
    return Rest(
        tables,
        is_known=True,
        lost={table: number for table, number in lost.items() if number or table not in _KNOWN_TABLES},
        summaries=named,
        migrations=migrations,
    )


def _tables(db: sqlite3.Connection) -> list[str]:
    names = db.execute("select name from sqlite_master where type = 'table' order by name")
    return [name for name in (_text(name) for (name,) in names) if not name.startswith("sqlite_")]


def _is_known(db: sqlite3.Connection) -> bool:
    return {_text(row[1]) for row in db.execute(f"pragma table_info({MESSAGES})")} >= _REQUIRED_COLUMNS


def _count(db: sqlite3.Connection, what: str) -> int:
    return int(db.execute(f"select count(*) from {what}").fetchone()[0])  # noqa: S608 - names, quoted


def _columns(db: sqlite3.Connection, query: str, values: Sequence[Any]) -> list[_Columns]:
    found = db.execute(query, values)
    names = [column[0] for column in found.description]
    return [{name: _cell(cell) for name, cell in zip(names, row, strict=True)} for row in found]


def _cell(value: object) -> Any:
    return value if value is None or isinstance(value, int | float) else _text(value)


def _text(value: object) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace")


def _row(table: str, key: str, columns: _Columns) -> RawRow:
    return RawRow(table=table, key=_key(table, key), value=msgspec.json.encode(columns))


def _key(table: str, key: str) -> str:
    """Return the key of a row: the table and the uuid, because several tables share uuids."""
    return f"{table} {key}"


def _line(base: _Columns, words: _Columns) -> _Columns:
    both = base | {name: value for name, value in words.items() if name not in base}
    line = {field: both[name] for name, field in _FIELDS.items() if both.get(name) is not None}
    line |= {flag: bool(line[flag]) for flag in _FLAGS if flag in line}
    line["parentUuid"] = base.get("parent_uuid")
    if (message := _loaded(words.get("message"))) is not None:
        if not isinstance(message, dict):
            message = {"role": base.get("message_type"), "content": message}
        if words.get("model") and not message.get("model"):
            message["model"] = words["model"]
        line["message"] = message
    if (result := _loaded(words.get("tool_use_result"))) is not None:
        line["toolUseResult"] = result
    return line


def _loaded(value: Any) -> Any:
    """Return a column decoded from JSON; other text unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return lenient_json.load(value)
    except lenient_json.FAILURES:
        return value
