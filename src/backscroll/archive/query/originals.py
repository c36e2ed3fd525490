"""Stored originals: files and database rows of units, and the lines and rows that messages were read from."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from backscroll.archive.connection import text_list
from backscroll.archive.session_key import PARENT, SessionKey
from backscroll.archive.storage import raw_files
from backscroll.archive.storage.delta import BodyReader
from backscroll.archive.storage.raw_rows import BlobRef, BlobStore, has_same_rows, read_rows
from backscroll.model.message import Message, Origin, is_uuid, record_id_of
from backscroll.model.resume import Resumable, Store
from backscroll.model.session import SessionSummary
from backscroll.model.store import estimate_bytes, prompt_log_kinds, store_rank
from backscroll.model.stream import RawRow
from backscroll.model.workspace import PathMaps

_COLUMNS = (  # of an `Original`
    "u.id, u.source, u.platform, u.root, u.path, u.size, u.modified_at, u.key, u.fingerprint, u.is_gone"
)
_FRAGMENTS = "fragment f join unit u on u.id = f.unit_id"
_OF_SESSION = f"(f.external_id = :id and not f.is_subagent or {PARENT} = :id)"
_HAS_FILE = "exists (select 1 from raw_segment r where r.unit_id = u.id)"
RowKeys = Callable[[str], Sequence[str]]  # the keys that the row of a location can have
ResultCallIds = Callable[[bytes], Iterable[str]]  # the tool calls that have their result in a record


class Original(msgspec.Struct, frozen=True):
    """A unit whose file or database rows are stored."""

    id: int
    source: str
    platform: str
    root: str
    path: str
    size: int  # bytes, or rows of a database
    modified_at: int | None  # milliseconds
    key: str = ""
    fingerprint: str = ""  # when it was last read
    is_gone: bool = False

    @property
    def estimated_bytes(self) -> int:
        """The size. For a session in a database, an estimate from its number of rows."""
        return estimate_bytes(self.size, self.key)


class Originals:
    """Original files and rows of units: list, read, compare, write."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def units_with_file(self) -> list[Original]:
        """Return every unit whose file is stored, ordered by root."""
        return self._units(f"unit u where {_HAS_FILE} order by source, root, path")

    def units_with_rows(self, session_id: str | None = None) -> list[Original]:
        """Return every unit whose rows are stored, or only those of a session, ordered by root.

        Side files of a file that is stored itself do not count.
        """
        return self._units(
            f"unit u where exists (select 1 from raw_row where unit_id = u.id) and not {_HAS_FILE}"  # noqa: S608
            " and (:id is null or exists (select 1 from fragment f where f.unit_id = u.id"
            "  and (f.external_id = :id or f.parent_external_id = :id)))"
            " order by source, root, path, key",
            {"id": session_id},
        )

    def files(self, summary: SessionSummary) -> list[Original]:
        """Return the units whose stored file belongs to a session or its subagents alone."""
        return self._units(
            f"{_FRAGMENTS} where {_is_content()} and f.platform = :platform and {_OF_SESSION} and {_HAS_FILE}"
            " order by u.path",
            {"platform": summary.platform, "id": summary.id},
        )

    def session_ids_by_path(self) -> dict[str, tuple[str, ...]]:
        """Return the sessions that were read from each file, by path. Prompt logs are omitted."""
        found: dict[str, tuple[str, ...]] = {}
        rows = self._db.execute(
            "select distinct u.path, s.session_external_id from fragment_session s"  # noqa: S608
            f" join unit u on u.id = s.unit_id where {_is_content()}"
            " and not u.is_gone order by u.path"
        )
        for path, session_id in rows:
            found[path] = (*found.get(path, ()), session_id)
        return found

    def side_files(self, original: Original) -> list[tuple[str, int]]:
        """Return path and size of the stored side files of a unit. Paths are below its root."""
        rows = self._db.execute(
            "select path, max(size) from raw_row where unit_id = ? and table_name = '' and path <> ''"
            " and content_hash is not null group by path order by path",
            [original.id],
        )
        return rows.fetchall()

    def in_store(self, summary: SessionSummary) -> list[Original]:
        """Return the units of a session and its subagents that are in the store of its source."""
        return [unit for unit in self.in_stores(summary) if unit.source == summary.source]

    def in_stores(self, summary: SessionSummary) -> list[Original]:
        """Return the units of a session and its subagents that are in the store of any source."""
        return self._units(
            f"{_FRAGMENTS} where {_is_content()} and not u.is_gone and f.platform = :platform"
            f" and {_OF_SESSION} order by u.path",
            {"platform": summary.platform, "id": summary.id},
        )

    def prompt_logs(self, summary: SessionSummary) -> list[Original]:
        """Return the units with prompts of a session whose file is stored, too."""
        return self._units(
            f"{_FRAGMENTS} where not ({_is_content()}) and f.platform = :platform and f.external_id = :id"
            f" and {_HAS_FILE} order by u.path",
            {"platform": summary.platform, "id": summary.id},
        )

    def _units(self, query: str, parameters: Mapping[str, Any] = {}) -> list[Original]:
        """Return the units that a query selects. It starts behind "from"."""
        rows = self._db.execute(f"select distinct {_COLUMNS} from {query}", parameters)  # noqa: S608
        return [Original(*row) for row in rows]

    def read_file(self, original: Original) -> Iterator[bytes]:
        """Read one stored file in blocks. Raises `ArchiveError` if it is damaged."""
        return raw_files.read_file(self._db, original.id, Path(original.path))

    def folder_maps(self, original: Original) -> PathMaps:
        """Return the folders that a restore onto this machine replaced. The stored file has the old ones."""
        pairs, _ = self._folders(original)
        return PathMaps(pairs)

    def folder_moves(self, original: Original) -> PathMaps:
        """Return the folders between which a deleted session was moved, after `folder_maps`.

        The stored file and its path have the first ones.
        """
        _, moves = self._folders(original)
        return PathMaps(()).followed_by_each(moves)

    def _folders(self, original: Original) -> list[list[tuple[str, str]]]:
        row = self._db.execute(
            "select folder_maps, folder_moves from unit where id = ?", [original.id]
        ).fetchone()
        return [msgspec.json.decode(pairs) if pairs else [] for pairs in row]

    def write_file(self, original: Original, target: Path) -> None:
        """Write one stored file, byte for byte."""
        raw_files.write_file(self._db, original.id, target)

    def write_session(self, session_id: str, folder: Path) -> list[Path]:
        """Write the stored files of a session into a folder under their names, byte for byte."""
        rows = self._db.execute(
            f"select distinct u.id, u.path from {_FRAGMENTS} where {_is_content()}"  # noqa: S608
            " and (f.external_id = :id and not f.is_subagent or f.parent_external_id = :id)"
            f" and {_HAS_FILE} order by u.path",
            {"id": session_id},
        ).fetchall()
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        for unit_id, path in rows:
            target = folder / Path(path).name
            if target in written:  # a session with files in several folders
                target = folder / Path(path).parent.name / target.name
                target.parent.mkdir(exist_ok=True)
            raw_files.write_file(self._db, unit_id, target)
            written.append(target)
        return written

    def is_same_file(self, unit_id: int, file: Path) -> bool:
        """Return whether a file equals the last stored version of a unit, byte for byte."""
        segments = self._db.execute(
            "select size, sha256 from raw_segment where unit_id = :unit and version ="
            " (select max(version) from raw_segment where unit_id = :unit) order by offset",
            {"unit": unit_id},
        )
        try:
            with file.open("rb") as opened:
                return all(sha256(opened.read(size)).digest() == digest for size, digest in segments) and (
                    not opened.read(1)
                )
        except OSError:
            return False

    def rows(self, original: Original, *, fullest: bool = False) -> Iterator[RawRow]:
        """Read the stored rows of a unit; see `raw_rows.read_rows`."""
        return read_rows(self._db, original.id, fullest=fullest)

    def has_same_rows(self, unit_id: int, rows: Iterable[RawRow]) -> bool:
        """Return whether these rows equal the stored rows of a unit."""
        return has_same_rows(self._db, unit_id, rows)

    def resumable(self, summary: SessionSummary) -> Resumable:
        """Return what a tool needs to resume a session."""
        session = SessionKey(summary.platform, summary.id)
        row = self._db.execute(
            "select metadata from conversations where platform = ? and external_id = ?", [*session]
        ).fetchone()
        metadata = msgspec.json.decode(row[0]) if row is not None else {}
        folders = metadata.get("cwds")
        return Resumable(
            id=summary.id,
            title=summary.original_title or summary.title,
            folder=summary.workspace_path,
            authority=metadata.get("workspace_authority"),
            folders=tuple(folders) if isinstance(folders, list) else (),
            stores=self._stores(session),
        )

    def _stores(self, session: SessionKey) -> tuple[Store, ...]:
        """Return the stores that contain a session, best and current first."""
        rows = self._db.execute(
            "select distinct u.source, u.root, u.path, f.store, u.is_gone from fragment f"  # noqa: S608
            " join unit u on u.id = f.unit_id where f.platform = ? and f.external_id = ?"
            f" and (not f.is_subagent or {PARENT} is null)",
            [*session],
        )
        found = [Store(source, root, path, kind, bool(gone)) for source, root, path, kind, gone in rows]
        return tuple(sorted(found, key=lambda store: (store_rank(store.kind), store.is_gone, store.path)))


def _is_content() -> str:
    """Return the condition that a unit contains more than the prompts of its sessions."""
    return f"u.kind not in {text_list(prompt_log_kinds())}"


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
            f"select distinct u.id, u.path from {_FRAGMENTS}"  # noqa: S608
            f" where f.platform = :platform and (f.external_id = :id or {PARENT} = :id)",
            {"platform": summary.platform, "id": session_id},
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
