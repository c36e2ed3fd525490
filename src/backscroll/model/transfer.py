"""Sessions to restore into a tool's store, or to move and copy between folders."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from backscroll.model.change import Change, ChangePlan, Content
from backscroll.model.session import SessionSummary
from backscroll.model.stream import RawRow

Mode = Literal["copy", "move"]


class StoredSession(Struct, frozen=True, kw_only=True):
    """A session in a tool's store."""

    ref: str
    id: str
    root: Path
    paths: tuple[str, ...]  # files and databases that contain the session and its subagents
    folder: str | None  # the workspace
    folders: tuple[str, ...] = ()  # all folders of the session
    title: str | None = None


class ArchivedFile(Struct, frozen=True):
    """A file as it was last read."""

    path: str
    size: int  # bytes
    content: Content
    label: str = "file"
    modified_at: float | None = None  # seconds since 1970


class ArchivedRows(Struct, frozen=True):
    """Rows of a unit as they were last read."""

    path: str  # of the database. `RawRow.path` is set for rows of other files below the root
    key: str
    rows: Callable[[], Iterable[RawRow]]
    modified_at: float | None = None  # of the file or database, in seconds since 1970


class ArchivedSession(Struct, frozen=True, kw_only=True):
    """A session in the archive, with the originals of its files and rows."""

    ref: str
    id: str
    root: Path
    files: tuple[ArchivedFile, ...] = ()
    rows: tuple[ArchivedRows, ...] = ()
    prompt_logs: tuple[ArchivedFile, ...] = ()  # with lines of other sessions, too
    creates_store: bool = False  # create the tool's database if there is none
    folder: str | None = None
    title: str | None = None


class SessionPlan(Struct, frozen=True):
    """Planned changes of one session."""

    changes: ChangePlan
    session_id: str  # the session's id after the changes; a copy has a new one
    subagent_ids: tuple[str, ...] = ()  # of the subagents that are copied under new ids


class BlockingProcess(Struct, frozen=True):
    """A running process that prevents a change."""

    pid: int | None  # None if only a lock file is known
    reason: str  # a sentence with the next step: "Cursor is running. Close it."


class PlannedSession(Struct, frozen=True):
    """A session with the changes that move, copy or restore it."""

    session: SessionSummary
    plan: SessionPlan
    root: Path  # the folder of the tool that is changed
    stored: StoredSession | None = None  # in the tool's store, unless it is to be restored

    @property
    def new_ref(self) -> str:
        """The ref of the session after the changes."""
        return f"{self.session.source}:{self.plan.session_id}"


class MigrateError(Struct, frozen=True):
    """Why one session was not moved, copied or restored."""

    session_id: str
    code: str  # "tool-running"; stable, compared in code
    message: str  # for people


class UnchangedSession(Struct, frozen=True):
    """A session that needs no change: it is in the target folder, or was copied by an interrupted command."""

    ref: str
    new_ref: str  # of the copy; else the same


class MigrationPlan(Struct, frozen=True, kw_only=True):
    """Sessions that can be moved or copied, and the reasons for those that cannot. Nothing has changed."""

    mode: Mode
    target: Path
    keep_cwd: bool
    roots: tuple[Path, ...]  # the folders of tools that may be changed
    sessions: tuple[PlannedSession, ...]
    unchanged: tuple[UnchangedSession, ...] = ()
    errors: tuple[MigrateError, ...] = ()
    command: str = ""  # hash of the command and its arguments


class MigratedSession(Struct, frozen=True):
    """A session that was moved or copied."""

    ref: str
    new_ref: str  # of a copy; the same for a moved session
    change: Change


class MigrateResult(Struct, frozen=True, kw_only=True):
    """Result of moving or copying sessions."""

    success_count: int
    failed_count: int
    errors: tuple[MigrateError, ...] = ()
    sessions: tuple[MigratedSession, ...] = ()
    unchanged: tuple[UnchangedSession, ...] = ()


class RefusedSession(Struct, frozen=True):
    """A session that cannot be restored."""

    session: SessionSummary
    error: MigrateError


class RestoreSessionsPlan(Struct, frozen=True, kw_only=True):
    """Sessions to restore with one change. Nothing has changed."""

    changes: ChangePlan  # for all sessions
    added: tuple[PlannedSession, ...]
    kept: tuple[SessionSummary, ...] = ()  # nothing of them is missing
    refused: tuple[RefusedSession, ...] = ()
    roots: tuple[Path, ...] = ()  # the folders of tools that may be changed


class RestoreSessionsResult(Struct, frozen=True, kw_only=True):
    """Result of restoring several sessions. Without a change, nothing was restored."""

    restored: tuple[str, ...] = ()  # refs
    kept: tuple[str, ...] = ()  # refs: nothing of them was missing
    errors: tuple[MigrateError, ...] = ()
    files: tuple[str, ...] = ()  # restored
    row_count: int = 0
    change: Change | None = None


class RestoreSessionResult(Struct, frozen=True):
    """Result of restoring a session. Without a change, nothing was missing."""

    ref: str
    files: tuple[str, ...]  # restored
    row_count: int
    change: Change | None
