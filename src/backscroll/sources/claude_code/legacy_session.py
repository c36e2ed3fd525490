"""Parse the sessions of version 0.2. Database rows are converted to transcript lines."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from backscroll.errors import BackscrollError
from backscroll.model import (
    Item,
    Message,
    Origin,
    Problem,
    RecordCounts,
    TitleHint,
    ToolResult,
    Unit,
    UsageReport,
)
from backscroll.model.text import pluralize
from backscroll.readers import jsonl, lenient_json
from backscroll.readers.sqlite.connection import problem_code
from backscroll.sources.claude_code import legacy_db
from backscroll.sources.claude_code.transcript.line_structs import RECORD_START, Line, decoder, is_record
from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["raw_records", "read"]


def read(unit: Unit) -> Iterator[Item]:
    """Yield the content of a session. A unit without a key yields the rows that belong to no session."""
    try:
        yield from _LegacyTranscript(unit).items() if unit.key else _read_orphans(unit)
    except (BackscrollError, sqlite3.Error) as error:
        counts = RecordCounts()
        counts.count("database", "problems")
        yield Problem(Origin(unit.path, unit.key or "database"), problem_code(error), str(error))
        yield counts


def raw_records(unit: Unit) -> Iterator[tuple[str, Any]]:
    """Yield every message as a transcript line, with its type."""
    try:
        for _, record in legacy_db.read_lines(Path(unit.path), unit.key) if unit.key else ():
            yield f"{record.get('type')} (row)", record
    except (BackscrollError, sqlite3.Error):
        return


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
        for number, (row_key, record) in enumerate(legacy_db.read_lines(path, self.unit.key), start=1):
            self._row_keys.append(row_key)
            raw = msgspec.json.encode(record)
            try:
                yield jsonl.Line(number, 0, len(raw), raw, (decoder.decode(raw),))
            except lenient_json.FAILURES:
                line = jsonl.salvage(raw, decoder, RECORD_START, is_record)
                line.number = number
                yield line
        for leaf, title in legacy_db.read_summaries(path, self.unit.key):
            self.counts.count(legacy_db.SUMMARIES, "ignored")
            self.emit(TitleHint(leaf, title, Origin(self.unit.path, f"{legacy_db.SUMMARIES} {leaf}")))

    def _row_origin(self, origin: Origin) -> Origin:
        """Return the origin with the row key instead of the line number."""
        number = origin.place.removeprefix("line ")
        if number == origin.place or not number.isdigit():
            return origin
        return Origin(origin.path, self._row_keys[int(number) - 1])


def _read_orphans(unit: Unit) -> Iterator[Item]:
    counts = RecordCounts()
    orphans = legacy_db.count_orphans(Path(unit.path))
    if orphans.tables and not orphans.is_known:
        tables = ", ".join(orphans.tables)
        reason = f"is not a store of Claude Code 0.2: it has {tables}"
        yield Problem(Origin(unit.path, "database"), "unknown-type", reason)
        counts.count("database with unknown tables", "problems")
        counts.add_unknown("tables of __store.db")
    for table, count in sorted(orphans.counts.items()):
        if table in (legacy_db.MESSAGES, *legacy_db.TEXT_TABLES):
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
        counts.count(legacy_db.SUMMARIES, "ignored", orphans.summary_count)
    if orphans.migration_count:
        counts.count("migrations", "ignored", orphans.migration_count)
    yield counts
