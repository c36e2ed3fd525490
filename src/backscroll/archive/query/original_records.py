"""The original records of messages: lines of stored files and stored database rows."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from backscroll.archive.storage.blob_store import BlobRef, BlobStore
from backscroll.archive.storage.delta import BodyReader
from backscroll.model import Message, Origin, SessionSummary, is_uuid, record_id_of

__all__ = ["OriginalRecords", "ResultCallIds", "RowKeys"]

RowKeys = Callable[[str], Sequence[str]]  # the keys that the row of a location can have
ResultCallIds = Callable[[bytes], Iterable[str]]  # the tool calls that have their result in a record


class OriginalRecords:
    """Find the records that messages were parsed from. Fastest if messages are requested in order."""

    def __init__(
        self,
        db: sqlite3.Connection,
        summary: SessionSummary,
        row_keys: RowKeys,
        result_call_ids: ResultCallIds,
    ) -> None:
        self._db = db
        self._row_keys = row_keys
        self._result_call_ids = result_call_ids
        session_id = summary.parent_ref.partition(":")[2] if summary.parent_ref else summary.id
        rows = db.execute(
            "select distinct u.id, u.path from fragment f join unit u on u.id = f.unit_id"
            " where f.platform = ?"
            " and (f.external_id = ? or coalesce(f.parent_external_id, f.inferred_parent_external_id) = ?)",
            [summary.platform, session_id, session_id],
        ).fetchall()
        self._units = {path: unit_id for unit_id, path in rows}
        self._unit_ids = msgspec.json.encode([unit_id for unit_id, _ in rows]).decode()
        self._blobs = BlobStore(db)
        self._files: dict[tuple[int, int], _FileLines] = {}
        self._result_lines: dict[int, _ResultLines] = {}
        self._result_blobs: dict[str, str] | None = None

    def of(self, message: Message) -> bytes | None:
        """Return the line or row of a message, None if it is not stored."""
        location = message.origin.place
        if location.startswith("line "):
            return self._line(message, int(location.removeprefix("line ")))
        return self._row(location)

    def result_of(self, message: Message) -> tuple[bytes, Origin] | None:
        """Return the record with the result of a tool call, and its origin.

        None if there is no such record, or if the record of the call contains the result.
        """
        if message.tool is None or message.tool.id is None or message.tool.result is None:
            return None
        call_id = message.tool.id
        origin = message.origin
        if origin.place.startswith("blob "):
            location, record = self._result_blob(call_id)
        elif origin.place.startswith("line "):
            location, record = self._result_line(call_id, origin.path)
        else:
            return None
        if record is None or location == origin.place:
            return None
        return record, Origin(origin.path, location)

    def _result_line(self, call_id: str, path: str) -> tuple[str, bytes | None]:
        unit_id = self._units.get(path)
        if unit_id is None:
            return "", None
        results = self._result_lines.setdefault(
            unit_id, _ResultLines(self._db, unit_id, self._result_call_ids)
        )
        number = results.line_number(call_id)
        return f"line {number}", results.lines.get(number) if number is not None else None

    def _result_blob(self, call_id: str) -> tuple[str, bytes | None]:
        if self._result_blobs is None:
            self._result_blobs = dict(self._read_result_blobs())
        location = f"blob {self._result_blobs.get(call_id)}"
        return location, self._row(location)

    def _read_result_blobs(self) -> Iterator[tuple[str, str]]:
        """Return the call ids that blobs of the units answer, each with the name of the blob."""
        rows = self._db.execute(
            "select key, blob_chunk_id, offset, size from raw_row"
            " where unit_id in (select value from json_each(?))"
            " and content_hash is not null order by blob_chunk_id, offset",
            [self._unit_ids],
        )
        for key, *location in rows.fetchall():
            value = self._blobs.get(BlobRef(*location))
            for call_id in self._result_call_ids(value):
                yield call_id, key.rpartition(":")[2]

    def _line(self, message: Message, number: int) -> bytes | None:
        unit_id = self._units.get(message.origin.path)
        if unit_id is None:
            return None
        record_id = record_id_of(message.id)
        versions = self._db.execute(
            "select distinct version from raw_segment where unit_id = ? order by version desc", [unit_id]
        )
        newest = None
        for (version,) in versions.fetchall():
            file = self._files.setdefault((unit_id, version), _FileLines(self._db, unit_id, version))
            line = file.get(number)
            if line is not None and (not is_uuid(record_id) or record_id.encode() in line):
                return line
            newest = newest or line
        # In a rewritten file the record can have moved to another line. Generated ids are in no line.
        return newest

    def _row(self, location: str) -> bytes | None:
        keys = msgspec.json.encode(self._row_keys(location)).decode()
        row = self._db.execute(
            "select blob_chunk_id, offset, size from raw_row"
            " where unit_id in (select value from json_each(?))"
            " and key in (select value from json_each(?)) and content_hash is not null order by version desc",
            [self._unit_ids, keys],
        ).fetchone()
        return self._blobs.get(BlobRef(*row)) if row is not None else None


class _FileLines:
    """The lines of one version of a stored file. Reads on from the last requested line."""

    def __init__(self, db: sqlite3.Connection, unit_id: int, version: int) -> None:
        self._db = db
        self._unit_id = unit_id
        self._version = version
        self._line_number = 0  # of the current line
        self._line = b""
        self._rest: Iterator[bytes] = iter(())

    def get(self, number: int) -> bytes | None:
        """Return a line by its number from 1, None after the end of the file."""
        if number < self._line_number or not self._line_number:
            self._line_number, self._rest = 0, _read_lines(self._db, self._unit_id, self._version)
        while self._line_number < number:
            line = next(self._rest, None)
            if line is None:
                self._line_number = 0
                return None
            self._line_number, self._line = self._line_number + 1, line
        return self._line


def _read_lines(db: sqlite3.Connection, unit_id: int, version: int) -> Iterator[bytes]:
    """Yield the lines of one version of a stored file.

    Not a method: the iterator would refer to the object that keeps it, and the decoded segment would stay in
    memory until the garbage collector runs.
    """
    reader = BodyReader(db)
    partial_line: list[bytes] = []  # continues in the next segment
    offsets = db.execute(
        "select offset from raw_segment where unit_id = ? and version = ? order by offset",
        [unit_id, version],
    )
    for (offset,) in offsets.fetchall():
        segment = db.execute(
            "select delta_base_unit_id, delta_base_fragment_id, body from raw_segment"
            " where unit_id = ? and version = ? and offset = ?",
            [unit_id, version, offset],
        ).fetchone()
        *lines, end = reader.decode_segment(*segment).split(b"\n")
        for line in lines:
            yield b"".join([*partial_line, line]) if partial_line else line
            partial_line = []
        partial_line.append(end)
    if last := b"".join(partial_line):
        yield last


class _ResultLines:
    """The lines with tool results in the newest version of a stored file. Reads no more than needed."""

    def __init__(self, db: sqlite3.Connection, unit_id: int, result_call_ids: ResultCallIds) -> None:
        self._result_call_ids = result_call_ids
        row = db.execute("select max(version) from raw_segment where unit_id = ?", [unit_id]).fetchone()
        version = row[0] or 0
        self.lines = _FileLines(db, unit_id, version)
        self._scanned = _FileLines(db, unit_id, version)
        self._scanned_count = 0
        self._line_numbers: dict[str, int] = {}
        self._is_complete = False

    def line_number(self, call_id: str) -> int | None:
        """Return the number of the line with the result of a call."""
        while call_id not in self._line_numbers and not self._is_complete:
            line = self._scanned.get(self._scanned_count + 1)
            if line is None:
                self._is_complete = True
                break
            self._scanned_count += 1
            for found in self._result_call_ids(line):
                self._line_numbers.setdefault(found, self._scanned_count)
        return self._line_numbers.get(call_id)
