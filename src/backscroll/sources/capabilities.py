"""Optional capabilities of a source that reading does not need: backup, restore, resume, hooks.

A method of `Source` returns each. It is a module with the functions of the protocol, or an object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path
    from sqlite3 import Connection
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model.backup import BackupFolder, SourceFile
    from backscroll.model.change import ChangePlan, Content
    from backscroll.model.commit import TrackedCode
    from backscroll.model.hook import HookEvent, HookFile
    from backscroll.model.resume import Command, Refusal, Resumable
    from backscroll.model.retention import Retention
    from backscroll.model.stream import Item, RawRow
    from backscroll.model.transfer import ArchivedSession, BlockingProcess, SessionPlan, StoredSession
    from backscroll.model.workspace import PathMaps, Workspace


class CodeTracking(Protocol):
    """Reads what the tool tracks about code and commits."""

    def tracked_code(self, root: Path) -> TrackedCode:
        """Return the edits and commits that the tool tracked; empty if it has none or it cannot be read."""


class ResumeCommands(Protocol):
    """Builds the command that resumes a session in the tool."""

    def resume_command(self, session: Resumable, machine: Machine) -> Command | Refusal:
        """Return the command, whether or not the tool is installed."""


class ProcessLookup(Protocol):
    """Finds the running process of the tool that has a session open."""

    def open_process(self, root: Path, session_id: str) -> int | None:
        """Return the process id; None if no process is known."""


class RetentionPolicy(Protocol):
    """Predicts which sessions the tool deletes."""

    def retention(
        self, root: Path, now: datetime, fingerprints: Mapping[str, bytes | None] | None = None
    ) -> Retention | None:
        """Return the sessions that the tool deletes within `WARNING_DAYS`; None if there are none.

        ``fingerprints`` are the current fingerprints of all folders, by path. With them, only folders without
        one are listed.
        """


class Hooks(Protocol):
    """The tool runs commands at certain events, as configured in a settings file."""

    def hook_file(self, machine: Machine, root: Path | None = None) -> HookFile:
        """Return the settings file and the events to register. ``root`` is the root given by the user."""

    def hook_session(self, payload: Mapping[str, Any]) -> str | None:
        """Return the id of the session that an event belongs to; None if it is an event of another tool."""

    def hook_workspace(self, payload: Mapping[str, Any]) -> Workspace | None:
        """Return the workspace that an event names."""

    def read_hook_events(self, session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
        """Parse the events of a session, sorted by time. The content of a transcript takes precedence."""

    def hook_usage(self, session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
        """Return the token counts in the events of a session that its files do not contain."""


class Relocation(ABC):
    """New paths and contents of the files of one root, when a backup is restored onto another machine."""

    warnings: tuple[str, ...]  # sentences for users

    @abstractmethod
    def path(self, path: str) -> str:
        """Return the new path of a file, relative to the root, with forward slashes."""

    @abstractmethod
    def content(self, path: str, blocks: Iterable[bytes]) -> Iterable[bytes] | None:
        """Return the new content of a file; None if it does not change."""

    def new_content(self, path: str, read: Content) -> Iterable[bytes]:
        """Return the content of a file with new paths, or the content as it is."""
        new = self.content(path, read())
        return read() if new is None else new

    def row(self, row: RawRow) -> RawRow:
        """Return an archived row with new paths in its value. A row without a table is a file."""
        if row.table or not row.path or row.value is None:
            return row
        content = self.content(row.path, [row.value])
        return row if content is None else replace(row, value=b"".join(content))

    @abstractmethod
    def edit_database(self, path: str, connection: Connection) -> None:
        """Change the paths in a private copy of a database."""


class Backup(Protocol):
    """Backup of the tool's history, and what a restore needs."""

    def backup_files(self, root: Path) -> Iterator[SourceFile]:
        """Return every file of the history below a root, each once. Settings and logins are omitted.

        What belongs to it but cannot be read is returned, too, so that it is reported: a folder that cannot
        be listed, a broken link, and a link to a folder that is not followed.
        """

    def is_history_path(self, path: str) -> bool:
        """Return whether `backup_files` may return a path below the root, with forward slashes.

        A restore writes no other files: a backup from an unknown source could contain settings with commands.
        """

    def expected_tables(self, path: str) -> frozenset[str]:
        """Return tables of which a database of the history has at least one, unless it is empty."""

    def remove_secrets(self, connection: Connection) -> None:
        """Delete the credentials in a private copy of one of the tool's databases."""

    def relocate(self, files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
        """Return the new paths and contents of the files of a root, for another machine."""


class RestorePlanner(Protocol):
    """Plans to restore several sessions below one root with one change."""

    def add(self, session: ArchivedSession) -> SessionPlan:
        """Add a session, and return what is changed for it. Raises the errors of `SessionWriter`.

        A session that raises an error leaves the plan as it was.
        """

    def changes(self) -> ChangePlan:
        """Return the changes for all sessions."""

    def close(self) -> None:
        """Close the files of the store."""


class SessionWriter(Protocol):
    """Plans changes of the tool's store. The methods read the store and write nothing.

    All raise `ChangeConflictError` if the target exists already, and `UnknownStoreVersionError` if the store
    has an unknown layout.
    """

    def plan_restore(self, session: ArchivedSession, *, is_replacing: bool = False) -> SessionPlan:
        """Plan to write a session that the tool has lost back to where it was.

        The plan is empty if nothing is missing. ``is_replacing`` replaces files and rows that differ, but no
        database as a whole. Raises `DataNotFoundError` if too little is archived.
        """

    def restore_planner(self, root: Path, check: Callable[[SessionPlan], None]) -> RestorePlanner:
        """Return a planner that restores several sessions. ``check`` raises an error to refuse one."""

    def plan_move(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        """Plan to move a session to another workspace folder, under the same id.

        ``target`` is absolute, without symbolic links. ``keep_cwd`` leaves the folder that is recorded with
        each message. Message text, signatures and content that a model has seen never change.
        """

    def plan_copy(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        """Plan to copy a session to another workspace folder, under a new id."""

    def blocking_processes(self, root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
        """Return the running processes that hold what a change of these sessions would write."""


class CompanionMoves(Protocol):
    """Moves what this source keeps of a session of another source, such as a transcript."""

    def plan_companion_move(self, session: StoredSession, target: Path) -> ChangePlan:
        """Plan the move. ``session`` has the root and the paths of this source."""


class FolderIds(Protocol):
    """Computes ids of workspace folders from a property that a folder keeps when it is moved."""

    def folder_id(self, path: str, stat: os.stat_result) -> str:
        """Return the id that the tool gave a folder if it had this path and these properties."""
