"""The original records of messages, out of the files and rows that are kept."""

import re
import sqlite3
from collections.abc import Iterator

import msgspec

from backscroll.archive.storage.blob_store import Pieces, Spot
from backscroll.archive.storage.delta import Plain
from backscroll.model import Message, Origin, SessionSummary, is_universal, record_of

__all__ = ["Records"]

# How a record says which call it answers: in a line of a file, and in a blob.
_ANSWERED = re.compile(rb'"tool_use_id"\s*:\s*("(?:[^"\\]|\\.)+")')
_RESULT = re.compile(rb'"toolCallId"\s*:\s*("(?:[^"\\]|\\.)+")')


class Records:
    """Finds the record that a message was read from; quickly, when they are asked for in order."""

    def __init__(self, db: sqlite3.Connection, summary: SessionSummary) -> None:
        self._db = db
        session = summary.parent_ref.partition(":")[2] if summary.parent_ref else summary.id
        rows = db.execute(
            "select distinct u.id, u.path from fragment f join unit u on u.id = f.unit_id where"
            " f.platform = ?"
            " and (f.external_id = ? or coalesce(f.parent_external_id, f.inferred_parent_external_id) = ?)",
            [summary.platform, session, session],
        ).fetchall()
        self._units = {path: number for number, path in rows}
        self._numbers = msgspec.json.encode([number for number, _ in rows]).decode()
        self._pieces = Pieces(db)
        self._files: dict[tuple[int, int], _Lines] = {}
        self._answers: dict[int, _Answers] = {}
        self._results: dict[bytes, str] | None = None

    def of(self, message: Message) -> bytes | None:
        """The line or row, as it is kept; None when it is not."""
        place = message.origin.place
        if place.startswith("line "):
            return self._line(message, int(place.removeprefix("line ")))
        return self._row(place)

    def answer(self, message: Message) -> tuple[bytes, Origin] | None:
        """The record that answered a call, and where it stood; None when the call's own record has it too."""
        if message.tool is None or message.tool.id is None or message.tool.result is None:
            return None
        call = msgspec.json.encode(message.tool.id)
        origin = message.origin
        if origin.place.startswith("blob "):
            place, record = self._answering_blob(call)
        elif origin.place.startswith("line "):
            place, record = self._answering_line(call, origin.path)
        else:
            return None
        if record is None or place == origin.place:
            return None
        return record, Origin(origin.path, place)

    def _answering_line(self, call: bytes, path: str) -> tuple[str, bytes | None]:
        unit = self._units.get(path)
        if unit is None:
            return "", None
        answers = self._answers.setdefault(unit, _Answers(self._db, unit))
        number = answers.number(call)
        return f"line {number}", answers.lines.get(number) if number is not None else None

    def _answering_blob(self, call: bytes) -> tuple[str, bytes | None]:
        if self._results is None:
            self._results = dict(self._find_results())
        place = f"blob {self._results.get(call)}"
        return place, self._row(place)

    def _find_results(self) -> Iterator[tuple[bytes, str]]:
        """The calls that blobs of these units answer, each with the name of the blob."""
        rows = self._db.execute(
            "select key, blob_chunk_id, offset, size from raw_row where unit_id in (select value"
            " from json_each(?))"
            " and content_hash is not null order by blob_chunk_id, offset",
            [self._numbers],
        )
        for key, *spot in rows.fetchall():
            value = self._pieces.get(Spot(*spot))
            if b'"tool-result"' in value:
                for call in _RESULT.findall(value):
                    yield call, key.rpartition(":")[2]

    def _line(self, message: Message, number: int) -> bytes | None:
        unit = self._units.get(message.origin.path)
        if unit is None:
            return None
        record = record_of(message.id)
        states = self._db.execute(
            "select distinct version from raw_segment where unit_id = ? order by version desc", [unit]
        )
        newest = None
        for (state,) in states.fetchall():
            file = self._files.setdefault((unit, state), _Lines(self._db, unit, state))
            line = file.get(number)
            if line is not None and (not is_universal(record) or record.encode() in line):
                return line
            newest = newest or line
        # A file that was rewritten may have had the record in another line; ids made by us stand in none.
        return newest

    def _row(self, place: str) -> bytes | None:
        kind, _, rest = place.partition(" ")
        keys = [place, kind] if kind != "blob" else [rest, f"agentKv:blob:{rest}"]
        row = self._db.execute(
            "select blob_chunk_id, offset, size from raw_row where unit_id in (select value from"
            " json_each(?))"
            " and key in (?, ?) and content_hash is not null order by version desc",
            [self._numbers, *keys],
        ).fetchone()
        return self._pieces.get(Spot(*row)) if row is not None else None


class _Lines:
    """The lines of one state of a kept file, read on from the last one asked for."""

    def __init__(self, db: sqlite3.Connection, unit: int, state: int) -> None:
        self._db = db
        self._unit = unit
        self._state = state
        self._at = 0  # the number of the line in hand
        self._line = b""
        self._rest = iter(())  # type: Iterator[bytes]

    def get(self, number: int) -> bytes | None:
        if number < self._at or not self._at:
            self._at, self._rest = 0, self._read()
        while self._at < number:
            line = next(self._rest, None)
            if line is None:
                self._at = 0
                return None
            self._at, self._line = self._at + 1, line
        return self._line

    def _read(self) -> Iterator[bytes]:
        plain = Plain(self._db)
        torn: list[bytes] = []  # a line that goes on in the next piece
        offsets = self._db.execute(
            "select offset from raw_segment where unit_id = ? and version = ? order by offset",
            [self._unit, self._state],
        )
        for (offset,) in offsets.fetchall():
            kept = self._db.execute(
                "select delta_base_unit_id, delta_base_fragment_id, body from raw_segment"
                " where unit_id = ? and version = ? and offset = ?",
                [self._unit, self._state, offset],
            ).fetchone()
            *whole, end = plain.original(*kept).split(b"\n")
            for line in whole:
                yield b"".join([*torn, line]) if torn else line
                torn = []
            torn.append(end)
        if last := b"".join(torn):
            yield last


class _Answers:
    """Which line of a file, as it was last kept, answers which call; read no further than was asked for."""

    def __init__(self, db: sqlite3.Connection, unit: int) -> None:
        newest = "select max(version) from raw_segment where unit_id = ?"
        state = db.execute(newest, [unit]).fetchone()[0] or 0
        self.lines = _Lines(db, unit, state)
        self._ahead = _Lines(db, unit, state)
        self._read = 0
        self._numbers: dict[bytes, int] = {}
        self._is_all = False

    def number(self, call: bytes) -> int | None:
        """The line that answers a call, which is given as JSON has it."""
        while call not in self._numbers and not self._is_all:
            line = self._ahead.get(self._read + 1)
            if line is None:
                self._is_all = True
                break
            self._read += 1
            if b"tool_use_id" in line:
                for found in _ANSWERED.findall(line):
                    self._numbers.setdefault(found, self._read)
        return self._numbers.get(call)
