"""Read ``__store.db``, the database of Claude Code 0.2 (spring 2025).

A row of ``base_messages`` corresponds to a line of a transcript. The text is in a row of ``user_messages`` or
``assistant_messages`` with the same uuid. The rows of a session are converted to lines and parsed as such.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from backscroll.errors import BackscrollError, DatabaseNotFoundError
from backscroll.model.message import Message, Origin
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Item, RawRow, RecordCounts, TitleHint, ToolResult, UsageReport
from backscroll.model.text import pluralize
from backscroll.readers import jsonl, lenient_json
from backscroll.readers.sqlite import Database, as_bytes, problem_code
from backscroll.sources.claude_code.locations import LEGACY_STORE, NAME
from backscroll.sources.claude_code.transcript.line_structs import RECORD_START, Line, decoder, is_record
from backscroll.sources.claude_code.transcript.reader import Transcript

MESSAGES = "base_messages"
_SUMMARIES = "conversation_summaries"
_TEXT_TABLES = ("user_messages", "assistant_messages")
_REQUIRED_COLUMNS = {"uuid", "session_id", "message_type"}
_KNOWN_TABLES = {MESSAGES, _SUMMARIES, *_TEXT_TABLES}
_MIGRATIONS = "__drizzle_migrations"
_ROWS_PER_BATCH = 100

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


class _OrphanRows(NamedTuple):
    """Numbers of rows that belong to no session."""

    tables: list[str]  # names of all tables
    is_known: bool  # whether they are the tables of version 0.2
    counts: dict[str, int]  # rows without a session, by table; all rows of unknown tables
    summary_count: int  # of messages that do not exist
    migration_count: int


def list_units(root: str, path: str, fingerprint: str) -> Iterator[Unit]:
    """Return a unit per session and one for all other rows. An unreadable database is one unit."""
    try:
        with Database(Path(path)) as database:
            found = database.read(_list_sessions)
    except DatabaseNotFoundError:
        return
    except (BackscrollError, sqlite3.Error):
        yield Unit(NAME, root, path, kind=LEGACY_STORE)  # without a fingerprint: it is read again
        return
    for id_, message_count, session_fingerprint in found:
        yield Unit(NAME, root, path, id_, session_fingerprint, message_count, "session", id_)
    yield Unit(NAME, root, path, "", fingerprint, 1, LEGACY_STORE)


def _list_sessions(db: sqlite3.Connection) -> list[tuple[str, int, str]]:
    """Return the id, message count and fingerprint of each session."""
    if not _has_known_tables(db):
        return []
    columns, joins = ["count(*)", "max(b.rowid)"], ""
    for table in (name for name in _TEXT_TABLES if name in _table_names(db)):
        columns.append(f"count({table}.uuid)")
        joins += f" left join {table} on {table}.uuid = b.uuid"
    if _SUMMARIES in _table_names(db):
        columns.append("max(s.updated_at)")
        joins += f" left join {_SUMMARIES} s on s.leaf_uuid = b.uuid"
    found = db.execute(
        f"select b.session_id, {', '.join(columns)} from {MESSAGES} b{joins}"  # noqa: S608 - our own names
        " where length(b.session_id) group by b.session_id order by max(b.rowid)"
    )
    return [(_text(id_), counts[0], "-".join(str(count) for count in counts)) for id_, *counts in found]


def read(unit: Unit) -> Iterator[Item]:
    """Yield the content of a session. A unit without a key yields the rows that belong to no session."""
    try:
        yield from _LegacyTranscript(unit).items() if unit.key else _read_orphans(unit)
    except (BackscrollError, sqlite3.Error) as error:
        counts = RecordCounts()
        counts.count("database", "problems")
        yield Problem(Origin(unit.path, unit.key or "database"), problem_code(error), str(error))
        yield counts


class _LegacyTranscript(Transcript):
    """Transcript that reads rows instead of lines."""

    def __init__(self, unit: Unit) -> None:
        super().__init__(unit)
        self.path = Path(unit.path).with_name(f"{unit.key}.jsonl")  # the name that newer versions use
        self.session_id = unit.key
        self._row_keys: list[str] = []  # by line

    def items(self) -> Iterator[Item]:
        for item in super().items():
            match item:
                case Message() | ToolResult() | UsageReport() | TitleHint() | Problem():
                    yield replace(item, origin=self._row_origin(item.origin))
                case RecordCounts():
                    item.checkpoint = None  # rows are always read from the start
                    yield item
                case _:
                    yield item

    def _lines(self) -> Iterator[jsonl.Line[Line]]:
        path = Path(self.unit.path)
        for number, (row_key, record) in enumerate(_read_lines(path, self.unit.key), start=1):
            self._row_keys.append(row_key)
            raw = msgspec.json.encode(record)
            try:
                yield jsonl.Line(number, 0, len(raw), raw, (decoder.decode(raw),))
            except lenient_json.FAILURES:
                line = jsonl.salvage(raw, decoder, RECORD_START, is_record)
                line.number = number
                yield line
        for leaf, title in _read_summaries(path, self.unit.key):
            self.counts.count(_SUMMARIES, "ignored")
            self.emit(TitleHint(leaf, title, Origin(self.unit.path, f"{_SUMMARIES} {leaf}")))

    def _row_origin(self, origin: Origin) -> Origin:
        """Return the origin with the row key instead of the line number."""
        number = origin.place.removeprefix("line ")
        if number == origin.place or not number.isdigit():
            return origin
        return Origin(origin.path, self._row_keys[int(number) - 1])


def _read_orphans(unit: Unit) -> Iterator[Item]:
    counts = RecordCounts()
    orphans = _read_orphan_counts(Path(unit.path))
    if orphans.tables and not orphans.is_known:
        tables = ", ".join(orphans.tables)
        reason = f"is not a store of Claude Code 0.2: it has {tables}"
        yield Problem(Origin(unit.path, "database"), "unknown-type", reason)
        counts.count("database with unknown tables", "problems")
        counts.add_unknown("tables of __store.db")
    for table, count in sorted(orphans.counts.items()):
        if table in (MESSAGES, *_TEXT_TABLES):
            yield Problem(
                Origin(unit.path, table), "orphaned-record", f"{pluralize(count, 'row')} without a session"
            )
        else:
            yield Problem(
                Origin(unit.path, table), "unknown-type", f"unknown table with {pluralize(count, 'row')}"
            )
            counts.add_unknown(f"table {table}")
        counts.count(table, "problems", max(1, count))
    if orphans.summary_count:
        counts.count(_SUMMARIES, "ignored", orphans.summary_count)
    if orphans.migration_count:
        counts.count("migrations", "ignored", orphans.migration_count)
    yield counts


def raw_records(unit: Unit) -> Iterator[tuple[str, Any]]:
    """Yield every message as a transcript line, with its type."""
    try:
        for _, record in _read_lines(Path(unit.path), unit.key) if unit.key else ():
            yield f"{record.get('type')} (row)", record
    except (BackscrollError, sqlite3.Error):
        return


def read_rows(path: Path, session: str) -> Iterator[RawRow]:
    """Yield the rows of a session. Raises as `_read_lines`."""
    with Database(path) as database:
        for base, text_rows in _fetch_messages(database, session):
            yield _to_raw_row(MESSAGES, base["uuid"], base)
            for table, columns in text_rows:
                yield _to_raw_row(table, base["uuid"], columns)
        for columns in database.read(lambda db: _fetch_summaries(db, session)):
            yield _to_raw_row(_SUMMARIES, columns["leaf_uuid"], columns)


# Messages and summaries


def _read_lines(path: Path, session: str) -> Iterator[tuple[str, _Columns]]:
    """Yield the messages of a session as transcript lines, in the order of the rows.

    The first value is the key of the row that has the text. Raises `BackscrollError` or `sqlite3.Error`.
    """
    with Database(path) as database:
        for base, text_rows in _fetch_messages(database, session):
            table, columns = text_rows[0] if text_rows else (MESSAGES, {})
            yield _row_key(table, base["uuid"]), _to_line(base, columns)


def _to_line(base: _Columns, text_columns: _Columns) -> _Columns:
    columns = base | {name: value for name, value in text_columns.items() if name not in base}
    line = {field: columns[name] for name, field in _FIELDS.items() if columns.get(name) is not None}
    line |= {flag: bool(line[flag]) for flag in _FLAGS if flag in line}
    line["parentUuid"] = base.get("parent_uuid")
    if (message := lenient_json.load_if_text(text_columns.get("message"))) is not None:
        if not isinstance(message, dict):
            message = {"role": base.get("message_type"), "content": message}
        if text_columns.get("model") and not message.get("model"):
            message["model"] = text_columns["model"]
        line["message"] = message
    if (result := lenient_json.load_if_text(text_columns.get("tool_use_result"))) is not None:
        line["toolUseResult"] = result
    return line


def _read_summaries(path: Path, session: str) -> list[tuple[str, str]]:
    """Return the summaries of a session: message id and text. Raises as `_read_lines`."""
    with Database(path) as database:
        return [
            (row["leaf_uuid"], row["summary"])
            for row in database.read(lambda db: _fetch_summaries(db, session))
        ]


def _fetch_messages(
    database: Database, session: str
) -> Iterator[tuple[_Columns, list[tuple[str, _Columns]]]]:
    """Yield the row of each message of a session, and the rows of its text with their tables."""
    rowids = database.read(
        lambda db: (
            db.execute(
                f"select rowid from {MESSAGES} where session_id = ? order by rowid",  # noqa: S608
                [session],
            ).fetchall()
            if _has_known_tables(db)
            else []
        )
    )
    for start in range(0, len(rowids), _ROWS_PER_BATCH):
        batch = [rowid for (rowid,) in rowids[start : start + _ROWS_PER_BATCH]]
        yield from database.read(partial(_fetch_batch, rowids=batch))


def _fetch_batch(
    db: sqlite3.Connection, rowids: Sequence[int]
) -> list[tuple[_Columns, list[tuple[str, _Columns]]]]:
    placeholders = ", ".join("?" * len(rowids))
    query = f"select rowid, * from {MESSAGES} where rowid in ({placeholders}) order by rowid"  # noqa: S608
    found = _fetch_rows(db, query, rowids)
    text_rows: dict[str, list[tuple[str, _Columns]]] = {}
    for table in (name for name in _TEXT_TABLES if name in _table_names(db)):
        query = f"select * from {table} where uuid in ({placeholders})"  # noqa: S608 - our own names
        for columns in _fetch_rows(db, query, [row["uuid"] for row in found]):
            text_rows.setdefault(columns["uuid"], []).append((table, columns))
    return [(row, text_rows.get(row["uuid"], [])) for row in found]


def _fetch_summaries(db: sqlite3.Connection, session: str) -> list[_Columns]:
    if not _has_known_tables(db) or _SUMMARIES not in _table_names(db):
        return []
    query = (
        f"select s.* from {_SUMMARIES} s join {MESSAGES} b on b.uuid = s.leaf_uuid"  # noqa: S608
        " where b.session_id = ? and s.summary is not null order by b.rowid"
    )
    return _fetch_rows(db, query, [session])


# Rows that belong to no session


def _read_orphan_counts(path: Path) -> _OrphanRows:
    """Count the rows that belong to no session. Raises as `_read_lines`."""
    with Database(path) as database:
        return database.read(_count_orphans)


def _count_orphans(db: sqlite3.Connection) -> _OrphanRows:
    tables = _table_names(db)
    if not _has_known_tables(db):
        return _OrphanRows(tables, is_known=False, counts={}, summary_count=0, migration_count=0)
    counts = {MESSAGES: _count_rows(db, f"{MESSAGES} where session_id is null or session_id = ''")}
    without_message = f"not exists (select 1 from {MESSAGES} b where b.uuid ="  # noqa: S608 - our own names
    for table in (name for name in _TEXT_TABLES if name in tables):
        counts[table] = _count_rows(db, f"{table} where {without_message} {table}.uuid)")
    summary_count = 0
    if _SUMMARIES in tables:
        summary_count = _count_rows(db, f"{_SUMMARIES} where {without_message} leaf_uuid)")
    migration_count = _count_rows(db, _MIGRATIONS) if _MIGRATIONS in tables else 0
    for table in set(tables) - _KNOWN_TABLES - {_MIGRATIONS}:
        counts[table] = _count_rows(db, '"' + table.replace('"', '""') + '"')
    return _OrphanRows(
        tables,
        is_known=True,
        counts={table: count for table, count in counts.items() if count or table not in _KNOWN_TABLES},
        summary_count=summary_count,
        migration_count=migration_count,
    )


# Tables and values


def _table_names(db: sqlite3.Connection) -> list[str]:
    names = db.execute("select name from sqlite_master where type = 'table' order by name")
    return [name for name in (_text(name) for (name,) in names) if not name.startswith("sqlite_")]


def _has_known_tables(db: sqlite3.Connection) -> bool:
    return {_text(row[1]) for row in db.execute(f"pragma table_info({MESSAGES})")} >= _REQUIRED_COLUMNS


def _count_rows(db: sqlite3.Connection, table_and_condition: str) -> int:
    return int(db.execute(f"select count(*) from {table_and_condition}").fetchone()[0])  # noqa: S608


def _fetch_rows(db: sqlite3.Connection, query: str, values: Sequence[Any]) -> list[_Columns]:
    cursor = db.execute(query, values)
    names = [column[0] for column in cursor.description]
    return [{name: _column_value(value) for name, value in zip(names, row, strict=True)} for row in cursor]


def _column_value(value: object) -> Any:
    return value if value is None or isinstance(value, int | float) else _text(value)


def _text(value: object) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace")


def _to_raw_row(table: str, key: str, columns: _Columns) -> RawRow:
    return RawRow(table=table, key=_row_key(table, key), value=msgspec.json.encode(columns))


def _row_key(table: str, key: str) -> str:
    """Return the key of a row: the table and the uuid, because several tables share uuids."""
    return f"{table} {key}"
