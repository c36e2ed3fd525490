"""Changes to the files and databases of a tool: planned, and recorded in the change log."""

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct

Content = Callable[[], Iterable[bytes]]  # called once or more, returns the new file in blocks
Value = str | bytes | int | float | None  # of a database column: the type is the storage class


class FileChange(Struct, frozen=True, kw_only=True):
    """Create, replace or delete one file."""

    path: Path
    content: Content | None  # None: delete the file
    before: str | None  # SHA-256 of the current file in hex; None: there must be no file
    size: int = 0  # bytes of the new file, estimated: for the free-space check and the printed plan
    label: str = "file"  # for the printed plan: "transcript", "subagent"
    is_left_if_changed: bool = False  # undo leaves a new file that has changed since
    # Seconds since 1970, of the new file; of a deleted one, if undo restores it. None: the current time.
    modified_at: float | None = None

    @property
    def action(self) -> Literal["create", "replace", "delete"]:
        if self.content is None:
            return "delete"
        return "create" if self.before is None else "replace"


class LineChange(Struct, frozen=True, kw_only=True):
    """Replace, append or remove one line of a file to which a tool may append at the same time."""

    path: Path
    before: bytes | None  # without the newline; None: append a line
    after: bytes | None  # None: remove the line; only the inverse of an appended line does that
    label: str = "line"


class RowChange(Struct, frozen=True, kw_only=True):
    """Insert, update or delete one row of a database."""

    database: Path
    table: str
    key: dict[str, Value]  # the columns that identify the row
    before: dict[str, Value] | None  # all columns of the current row; None: there must be no row
    after: (
        dict[str, Value] | None
    )  # all columns of an inserted row, or the changed ones; None: delete the row
    label: str = "row"
    session: str = ""  # ref, if the plan has several sessions and the row belongs to one of them

    @property
    def action(self) -> Literal["insert", "update", "delete"]:
        if self.after is None:
            return "delete"
        return "insert" if self.before is None else "update"


class FolderMove(Struct, frozen=True):
    """Move a session to another folder in the archive: its tool has deleted it."""

    session: str  # ref
    before: str
    after: str


class NewTable(Struct, frozen=True):
    """A table that a database does not have yet. Undo drops it if it is empty again."""

    database: Path
    name: str
    statement: str  # that creates it


class ChangePlan(Struct, frozen=True, kw_only=True):
    """Everything that one command changes. Nothing has been changed yet."""

    what: str  # for users: "Move claude-code:0f3c9a12 to /home/ada/ferry"
    sessions: tuple[str, ...] = ()  # refs of the sessions concerned
    files: tuple[FileChange, ...] = ()
    lines: tuple[LineChange, ...] = ()
    rows: tuple[RowChange, ...] = ()
    tables: tuple[NewTable, ...] = ()  # that the rows need
    moves: tuple[FolderMove, ...] = ()
    warnings: tuple[str, ...] = ()  # sentences for users
    batch: str = ""  # the same for all changes of one command; `undo` without an id reverts them together
    command: str = ""  # hash of the command and its arguments: a second run continues an open batch
    copies: tuple[str, ...] = ()  # refs of new sessions that are copies of others

    @property
    def is_empty(self) -> bool:
        return not (self.files or self.lines or self.rows or self.moves)


# preparing  files are staged and saved; nothing of the tool has changed
# applying   some of the operations may have been done
# undoing    some of the operations may have been reverted
ChangeState = Literal["preparing", "applying", "applied", "undoing", "undone"]


class Change(Struct, frozen=True, kw_only=True):
    """Entry of the change log."""

    id: str
    at: datetime
    what: str
    sessions: tuple[str, ...]
    file_count: int
    row_count: int
    is_undone: bool = False
    is_interrupted: bool = False  # by a crash: the next change rolls it back
    state: ChangeState = "applied"
    problems: tuple[str, ...] = ()  # sentences: what undo could not restore
    batch: str = ""
    command: str = ""  # hash of the command and its arguments
    paths: tuple[str, ...] = ()  # files and databases
    copies: tuple[str, ...] = ()  # refs of new sessions that are copies of others
