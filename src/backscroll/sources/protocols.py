"""Interface of a source, and its optional capabilities.

A source has the five members of `Source`. Everything else is optional: a source that can do more inherits
from the capability, and callers check with ``isinstance``. Capabilities are abstract base classes, not
protocols: since Python 3.12, ``isinstance`` on a protocol imports ``inspect``, which slows down start-up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path
    from sqlite3 import Connection
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow, Retention, Unit, Workspace
    from backscroll.model.code.commit import TrackedCode
    from backscroll.model.code.hooks import HookEvent, HookFile
    from backscroll.model.resume import Command, Refusal, Resumable
    from backscroll.model.safekeeping.backup import BackupFolder, InsertPlan, SelectedFiles, SourceFile
    from backscroll.model.safekeeping.changes import ChangePlan
    from backscroll.model.safekeeping.path_maps import PathMaps
    from backscroll.model.safekeeping.transfer import (
        ArchivedSession,
        BlockingProcess,
        SessionPlan,
        StoredSession,
    )

__all__ = [
    "BackupContents",
    "ChangeMarkers",
    "Closeable",
    "CodeTracking",
    "Folder",
    "FolderIds",
    "FolderListing",
    "HookEvents",
    "HookSettings",
    "PathLookup",
    "PathMapping",
    "ProcessLookup",
    "RawRecords",
    "RawRows",
    "RecordLookup",
    "Relocation",
    "ResumeCommands",
    "RetentionPolicy",
    "SessionSelection",
    "SessionWriter",
    "Source",
    "Watchable",
    "close",
    "open_process",
    "raw_rows",
]


class Source(Protocol):
    """Read-only access to the history of one tool."""

    @property
    def name(self) -> str:
        """The prefix of a ref, the config key and the ``--source`` value."""

    @property
    def platform(self) -> str:
        """The value of the unified schema's ``platform`` column."""

    def roots(self, machine: Machine) -> list[Path]:
        """Return the folders where the tool keeps history, installed or not."""

    def units(self, root: Path) -> Iterator[Unit]:
        """List the units below a root: names, sizes and fingerprints. No parsing."""

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse a unit, from a checkpoint if there is one. A bad record yields a `Problem`."""


class Folder(Protocol):
    """Listed folder. If its fingerprint is unchanged, its units are not compared."""

    @property
    def path(self) -> str:
        """The path, with a separator at the end."""

    @property
    def is_unreadable(self) -> bool:
        """True if the folder could not be listed: its content is unknown."""

    @property
    def unit_count(self) -> int:
        """The number of units in the folder itself."""

    @property
    def fingerprint(self) -> bytes:
        """A value that changes whenever a unit in the folder changes, or the code that selects units."""

    def units(self) -> Iterator[Unit]:
        """Return the units in the folder itself, as they were when it was listed."""


class FolderListing(ABC):
    """Lists units folder by folder, so that unchanged folders are skipped. For sources of single files."""

    @abstractmethod
    def folders(self, root: Path) -> Iterator[Folder]:
        """Return every folder that has units, and every folder that could not be listed."""


class PathLookup(ABC):
    """Finds the units that a change of a file affects, without listing the others."""

    @abstractmethod
    def units_at(self, root: Path, paths: Collection[str]) -> Iterable[Unit] | None:
        """Return the units affected by changes at these paths. A path of a folder affects all units in it.

        Return None if all units have to be compared.
        """


class ChangeMarkers(ABC):
    """Has marker units: units that change whenever any other unit changes."""

    @abstractmethod
    def change_markers(self, root: Path) -> list[Unit]:
        """Return the marker units. They are read after all other units."""


class Watchable(ABC):
    """Knows which paths to watch. By default the whole root is watched."""

    @abstractmethod
    def watched_paths(self, root: Path) -> list[Path]:
        """Return the files and folders that the tool writes history to, existing or not."""


class RawRows(ABC):
    """Returns the database rows that make up a unit, so that the archive can keep them."""

    @abstractmethod
    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a unit without secrets. Those of a file are the small files that belong to it.

        Raises `BackscrollError` or `sqlite3.Error` if they cannot be read to the end.
        """


class RawRecords(ABC):
    """Returns decoded records, so that their structure can be printed for a bug report."""

    @abstractmethod
    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return the type and content of each record of a unit. Records with secrets are omitted."""


class CodeTracking(ABC):
    """Reads what the tool tracks about code and commits."""

    @abstractmethod
    def tracked_code(self, root: Path) -> TrackedCode:
        """Return the edits and commits that the tool tracked; empty if it has none or it cannot be read."""


class RecordLookup(ABC):
    """Finds the records behind a message among the rows and lines that the archive keeps."""

    @abstractmethod
    def row_keys(self, place: str) -> tuple[str, ...]:
        """Return the possible keys of the row at the place of an origin."""

    @abstractmethod
    def result_call_ids(self, record: bytes) -> list[str]:
        """Return the ids of the tool calls whose results a line or row contains."""


class RetentionPolicy(ABC):
    """Predicts which sessions the tool deletes."""

    @abstractmethod
    def retention(
        self, root: Path, now: datetime, fingerprints: Mapping[str, bytes | None] | None = None
    ) -> Retention | None:
        """Return the sessions that the tool deletes within a week; None if there are none.

        ``fingerprints`` are the current fingerprints of all folders, by path. With them, only folders without
        one are listed.
        """


class BackupContents(ABC):
    """Lists the files that a backup of the tool's history contains."""

    @abstractmethod
    def backup_files(self, root: Path) -> Iterator[SourceFile]:
        """Return every file of the history below a root, each once. Settings and logins are omitted.

        A folder that cannot be listed is returned too, so that it is reported when it is opened.
        """

    @abstractmethod
    def remove_secrets(self, connection: Connection) -> None:
        """Delete the credentials in a private copy of one of the tool's databases."""

    @abstractmethod
    def copy_secrets(self, current: Connection, restored: Connection) -> None:
        """Copy the credentials of a current database into the restored one that replaces it."""


class SessionSelection(ABC):
    """Selects single sessions for a backup. Files with several sessions are reduced to the selected ones."""

    @abstractmethod
    def select_files(self, root: Path, session_ids: Collection[str], paths: Collection[str]) -> SelectedFiles:
        """Return the files below a root that contain something of these sessions.

        ``paths`` are the files that the sessions were read from.
        """

    @abstractmethod
    def copy_sessions(
        self, path: str, source: Connection, target: Connection, session_ids: Collection[str]
    ) -> bool:
        """Copy the rows of sessions to an empty database. Return whether there are any.

        ``path`` is the database's path below the root, with forward slashes.
        """

    @abstractmethod
    def select_records(self, path: str, content: Iterable[bytes], session_ids: Collection[str]) -> bytes:
        """Return a file with the records of sessions only; no bytes if there are none."""

    @abstractmethod
    def plan_insert(self, copy: Path, root: Path, *, force: bool) -> InsertPlan:
        """Plan to add the sessions in a reduced copy of a root to the store at another root.

        The copy contains only files with several sessions. Existing sessions that differ are replaced only
        with ``force``. Other sessions are never changed.
        """


class Relocation(ABC):
    """New paths and contents of the files of one root, when a backup is restored onto another machine."""

    warnings: tuple[str, ...]  # sentences for users

    @abstractmethod
    def path(self, path: str) -> str:
        """Return the new path of a file, relative to the root, with forward slashes."""

    @abstractmethod
    def content(self, path: str, blocks: Iterable[bytes]) -> Iterable[bytes] | None:
        """Return the new content of a file; None if it does not change."""

    @abstractmethod
    def edit_database(self, path: str, connection: Connection) -> None:
        """Change the paths in a private copy of a database."""


class PathMapping(ABC):
    """Replaces the paths of one machine by those of another in files that are restored."""

    @abstractmethod
    def relocate(self, files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
        """Return the new paths and contents of the files of a root."""


class ResumeCommands(ABC):
    """Builds the command that resumes a session in the tool."""

    @abstractmethod
    def resume_command(self, session: Resumable, machine: Machine) -> Command | Refusal:
        """Return the command, whether or not the tool is installed."""


class HookEvents(ABC):
    """Reports events to hooks."""

    @abstractmethod
    def hook_session(self, payload: Mapping[str, Any]) -> str | None:
        """Return the id of the session that an event belongs to; None if it is an event of another tool."""

    @abstractmethod
    def hook_workspace(self, payload: Mapping[str, Any]) -> Workspace | None:
        """Return the workspace that an event names."""

    @abstractmethod
    def read_hook_events(self, session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
        """Parse the events of a session, sorted by time. The content of a transcript takes precedence."""

    @abstractmethod
    def hook_usage(self, session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
        """Return the token counts in the events of a session that its files do not contain."""


class HookSettings(ABC):
    """Runs commands at certain events, as configured in a settings file."""

    @abstractmethod
    def hook_file(self, machine: Machine, root: Path | None = None) -> HookFile:
        """Return the settings file and the events to register. ``root`` is the root given by the user."""


class ProcessLookup(ABC):
    """Finds the running process of the tool that has a session open."""

    @abstractmethod
    def open_process(self, root: Path, session_id: str) -> int | None:
        """Return the process id; None if no process is known."""


class SessionWriter(ABC):
    """Plans changes of the tool's store. The methods read the store and write nothing.

    All raise `ChangeConflictError` if the target exists already, and `UnknownStoreVersionError` if the store
    has an unknown layout.
    """

    @abstractmethod
    def plan_restore(self, session: ArchivedSession) -> SessionPlan:
        """Plan to write a session that the tool has lost back to where it was.

        The plan is empty if nothing is missing. Raises `DataNotFoundError` if too little is archived.
        """

    @abstractmethod
    def plan_move(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        """Plan to move a session to another workspace folder, under the same id.

        ``target`` is absolute, without symbolic links. ``keep_cwd`` leaves the folder that is recorded with
        each message. Message text, signatures and content that a model has seen never change.
        """

    def plan_companion_move(self, session: StoredSession, target: Path) -> ChangePlan:
        """Plan to move what this source keeps of a session of another source, such as a transcript.

        ``session`` has the root and the paths of this source. By default, nothing is moved.
        """
        from backscroll.model.safekeeping.changes import ChangePlan  # start-up time

        return ChangePlan(what=f"Move {session.ref} to {target}")

    @abstractmethod
    def plan_copy(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        """Plan to copy a session to another workspace folder, under a new id."""

    @abstractmethod
    def blocking_processes(self, root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
        """Return the running processes that hold what a change of these sessions would write."""


class FolderIds(ABC):
    """Computes ids of workspace folders from a property that a folder keeps when it is moved."""

    @abstractmethod
    def folder_id(self, path: str, stat: os.stat_result) -> str:
        """Return the id that the tool gave a folder if it had this path and these properties."""


class Closeable(ABC):
    """Keeps files or caches open between two calls."""

    @abstractmethod
    def close(self) -> None:
        """Close files and caches. The source can be used again."""


def raw_rows(source: Source, unit: Unit) -> Iterator[RawRow]:
    """Return the rows of a unit; none if the source does not read rows."""
    return source.raw_rows(unit) if isinstance(source, RawRows) else iter(())


def open_process(source: Source, root: Path, session_id: str) -> int | None:
    """Return the process that has a session open; None if the source cannot find it."""
    return source.open_process(root, session_id) if isinstance(source, ProcessLookup) else None


def close(source: Source) -> None:
    """Close the source if it keeps anything open."""
    if isinstance(source, Closeable):
        source.close()
