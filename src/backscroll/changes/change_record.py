"""The record of one change: its state, its operations, and rows before and after.

Each change has a folder with ``change.json``, ``rows.msgpack`` and the saved files.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.changes.files import sync_folder, write_file
from backscroll.model.change import Change, ChangeState, FolderMove, LineChange, NewTable, RowChange

_RECORD_FILE = "change.json"
_ROWS_FILE = "rows.msgpack"


class FileOperation(Struct, kw_only=True):
    """Create, replace or delete one file."""

    path: str
    before: str | None  # SHA-256 in hex; None if there was no file
    after: str | None = None  # None if the file is deleted
    mode: int = 0o600
    modified_at: float | None = None  # of the new or restored file; None: the current time
    saved: str | None = None  # name in the change's folder
    staged: str | None = None  # path next to the target
    is_left_if_changed: bool = False
    content_hash: str | None = None  # of the rows of a new database, as `rows.content_hash`


class LineOperation(Struct, frozen=True):
    """Replace, append or remove one line."""

    path: str
    before: bytes | None
    after: bytes | None

    def to_change(self) -> LineChange:
        return LineChange(path=Path(self.path), before=self.before, after=self.after)


class TableOperation(Struct, frozen=True):
    """Create one table."""

    database: str
    name: str
    statement: str

    def to_change(self) -> NewTable:
        return NewTable(Path(self.database), self.name, self.statement)


class ChangeRecord(Struct, kw_only=True):
    """The record of one change."""

    id: str
    at: datetime
    what: str
    sessions: tuple[str, ...]
    state: ChangeState
    number: int = 0  # counts changes: ids are times, and clocks go back. 0 in old records
    batch: str = ""
    command: str = ""
    is_batch_end: bool = False  # the last change of a command that was not interrupted
    copies: tuple[str, ...] = ()
    files: list[FileOperation] = []
    lines: list[LineOperation] = []
    row_count: int = 0
    databases: list[str] = []  # whose rows change
    tables: list[TableOperation] = []
    moves: tuple[FolderMove, ...] = ()
    problems: list[str] = []  # sentences: what undo could not restore
    committed_databases: list[str] = []
    created_folders: list[str] = []  # the outermost first
    emptied_folders: list[str] = []  # folders of deleted files, removed if empty

    @property
    def order(self) -> tuple[int, str]:
        """The order in which changes were made."""
        return self.number, self.id

    @property
    def affected(self) -> frozenset[str]:
        """The sessions that undo changes: of a copy, only the new ones."""
        return frozenset(self.copies or self.sessions)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files and databases that change."""
        return (
            *(one.path for one in self.files),
            *(one.path for one in self.lines),
            *self.databases,
        )

    @property
    def is_finished(self) -> bool:
        """Whether the change is complete or undone, and not interrupted."""
        return self.state in ("applied", "undone")

    def write(self, folder: Path) -> None:
        """Write the record durably."""
        temporary = folder / f"{_RECORD_FILE}.part"
        temporary.unlink(missing_ok=True)
        write_file(temporary, [msgspec.json.format(msgspec.json.encode(self))])
        temporary.replace(folder / _RECORD_FILE)
        sync_folder(folder)

    def to_change(self) -> Change:
        return Change(
            id=self.id,
            at=self.at,
            what=self.what,
            sessions=self.sessions,
            file_count=len({one.path for one in self.files} | {one.path for one in self.lines}),
            row_count=self.row_count,
            is_undone=self.state == "undone",
            is_interrupted=not self.is_finished,
            state=self.state,
            problems=tuple(self.problems),
            batch=self.batch,
            command=self.command,
            copies=self.copies,
            paths=self.paths,
        )


class _Row(Struct, frozen=True):
    database: str
    table: str
    key: dict[str, Any]  # of `Value`: msgpack distinguishes text and bytes by itself
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    session: str = ""


def has_record(folder: Path) -> bool:
    """Return whether a change has a record, readable or not. Then its folder may hold the only copies."""
    return (folder / _RECORD_FILE).exists()


def read_record(folder: Path) -> ChangeRecord | None:
    """Return the record of a change; None if the folder has no readable one."""
    try:
        return msgspec.json.decode((folder / _RECORD_FILE).read_bytes(), type=ChangeRecord)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


def write_rows_file(folder: Path, rows: Sequence[RowChange]) -> None:
    """Save rows before and after, durably."""
    _write_rows(folder / _ROWS_FILE, rows)


def _write_rows(path: Path, rows: Sequence[RowChange]) -> None:
    packed = (
        msgspec.msgpack.encode(
            _Row(str(row.database), row.table, row.key, row.before, row.after, row.session)
        )
        for row in rows
    )
    write_file(path, (len(row).to_bytes(8, "little") + row for row in packed))


def rewrite_rows_file(folder: Path, rows: Sequence[RowChange]) -> None:
    """Replace the saved rows. The former ones are gone when this returns."""
    temporary = folder / f"{_ROWS_FILE}.part"
    temporary.unlink(missing_ok=True)
    _write_rows(temporary, rows)
    temporary.replace(folder / _ROWS_FILE)
    sync_folder(folder)


def read_rows(folder: Path) -> Iterator[RowChange]:
    """Read the saved rows of a change."""
    path = folder / _ROWS_FILE
    if not path.exists():
        return
    with path.open("rb") as file:
        while size := file.read(8):
            row = msgspec.msgpack.decode(file.read(int.from_bytes(size, "little")), type=_Row)
            yield RowChange(
                database=Path(row.database),
                table=row.table,
                key=row.key,
                before=row.before,
                after=row.after,
                session=row.session,
            )
