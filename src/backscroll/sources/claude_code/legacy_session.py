"""Parse sessions of version 0.2 by converting database rows to transcript lines."""

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
from backscroll.readers import jsonl, lenient_json
from backscroll.readers.sqlite import problem_code
from backscroll.sources.claude_code import legacy_db
from backscroll.sources.claude_code.transcript.line_types import STARTS, Line, decoder, is_record
from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["raw_records", "read"]


def read(unit: Unit) -> Iterator[Item]:
    """Yield the content of a session, or what belongs to no session."""
    try:
        yield from _Stored(unit).items() if unit.key else _rest(unit)
    except (BackscrollError, sqlite3.Error) as error:
        tally = RecordCounts()
        tally.count("database", "problems")
        yield Problem(Origin(unit.path, unit.key or "database"), problem_code(error), str(error))
        yield tally


def raw_records(unit: Unit) -> Iterator[tuple[str, Any]]:
    """Yield every message as a transcript line, with its type."""
    try:
        for _, record in legacy_db.records(Path(unit.path), unit.key) if unit.key else ():
            yield f"{record.get('type')} (row)", record
    except (BackscrollError, sqlite3.Error):
        return


class _Stored(Transcript):
    """Transcript that reads rows instead of lines."""

    def __init__(self, unit: Unit) -> None:
        super().__init__(unit)
        self.path = Path(unit.path).with_name(
            f"{unit.key}.jsonl"
        )  # the file name that a newer version would use
        self._places: list[str] = []  # row keys, by line

    def items(self) -> Iterator[Item]:
        for item in super().items():
            match item:
                case Message() | ToolResult() | UsageReport() | TitleHint() | Problem():
                    yield replace(item, origin=self._placed(item.origin))
                case RecordCounts():
                    item.checkpoint = None  # rows are always read from the start
                    yield item
                case _:
                    yield item

    def _lines(self) -> Iterator[jsonl.Line[Line]]:
        path = Path(self.unit.path)
        for number, (place, record) in enumerate(legacy_db.records(path, self.unit.key), start=1):
            self._places.append(place)
            raw = msgspec.json.encode(record)
            try:
                yield jsonl.Line(number, 0, len(raw), raw, (decoder.decode(raw),))
            except lenient_json.FAILURES:
                line = jsonl.salvage(raw, decoder, STARTS, is_record)
                line.number = number
                yield line
        for leaf, title in legacy_db.summaries(path, self.unit.key):
            self.tally.count(legacy_db.SUMMARIES, "ignored")
            self.emit(TitleHint(leaf, title, Origin(self.unit.path, f"{legacy_db.SUMMARIES} {leaf}")))

    def _placed(self, origin: Origin) -> Origin:
        """Return the origin with the row key instead of the line number."""
        number = origin.place.removeprefix("line ")
        if number == origin.place or not number.isdigit():
            return origin
        return Origin(origin.path, self._places[int(number) - 1])


def _rest(unit: Unit) -> Iterator[Item]:
    tally = RecordCounts()
    found = legacy_db.rest(Path(unit.path))
    if found.tables and not found.is_known:
        tables = ", ".join(found.tables)
        reason = f"is not a store of Claude Code 0.2: it has {tables}"
        yield Problem(Origin(unit.path, "database"), "unknown-type", reason)
        tally.count("database of unknown tables", "problems")
        tally.add_unknown("tables of __store.db")
    for table, number in sorted(found.lost.items()):
        if table in (legacy_db.MESSAGES, *legacy_db.TEXT_TABLES):
            yield Problem(Origin(unit.path, table), "orphaned-record", f"{number} rows belong to no session")
        else:
            yield Problem(Origin(unit.path, table), "unknown-type", f"unknown table, with {number} rows")
            tally.add_unknown(f"table {table}")
        tally.count(table, "problems", max(1, number))
    if found.summaries:
        tally.count(legacy_db.SUMMARIES, "ignored", found.summaries)
    if found.migrations:
        tally.count("migrations", "ignored", found.migrations)
    yield tally
