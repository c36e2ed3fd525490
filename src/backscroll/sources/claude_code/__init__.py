"""Claude Code: a JSONL file per session under ``~/.claude/projects``.

docs/formats/claude-code.md describes the format and the versions seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.sources.claude_code import locations
from backscroll.sources.claude_code.folders import Folder, list_all_folders
from backscroll.sources.protocols import (
    BackupContents,
    FolderListing,
    HookEvents,
    HookSettings,
    PathLookup,
    PathMapping,
    ProcessLookup,
    RawRecords,
    RawRows,
    RecordLookup,
    Relocation,
    ResumeCommands,
    RetentionPolicy,
    SessionSelection,
    SessionWriter,
    Watchable,
)
from backscroll.sources.record_ids import string_values

if TYPE_CHECKING:
    from datetime import datetime
    from sqlite3 import Connection
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow, Retention, Unit, Workspace
    from backscroll.model.code.hooks import HookEvent, HookFile
    from backscroll.model.resume import Command, Refusal, Resumable
    from backscroll.model.safekeeping.backup import BackupFolder, InsertPlan, SelectedFiles, SourceFile
    from backscroll.model.safekeeping.path_maps import PathMaps
    from backscroll.model.safekeeping.transfer import (
        ArchivedSession,
        BlockingProcess,
        SessionPlan,
        StoredSession,
    )
    from backscroll.sources.claude_code.reader import UnitReader

__all__ = ["ClaudeCode"]


class ClaudeCode(
    BackupContents,
    FolderListing,
    HookEvents,
    HookSettings,
    PathLookup,
    PathMapping,
    ProcessLookup,
    RawRecords,
    RawRows,
    RecordLookup,
    ResumeCommands,
    RetentionPolicy,
    SessionSelection,
    SessionWriter,
    Watchable,
):
    """History of Claude Code: transcripts of sessions and subagents, and the prompt log."""

    name = locations.NAME
    platform = "claude_code"

    def roots(self, machine: Machine) -> list[Path]:
        return locations.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        return locations.units(root)

    def folders(self, root: Path) -> Iterator[Folder]:
        return list_all_folders(str(root))

    def units_at(self, root: Path, paths: Collection[str]) -> list[Unit]:
        return locations.units_at(root, paths)

    def watched_paths(self, root: Path) -> list[Path]:
        return locations.watched_paths(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse transcripts and the prompt log from their checkpoint on, other files from the start."""
        return self._reader.read(unit, since)

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session in the database of version 0.2, or the side files of a transcript."""
        return self._reader.raw_rows(unit)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return every line with its type and, if there is one, its subtype."""
        return self._reader.raw_records(unit)

    @cached_property
    def _reader(self) -> UnitReader:
        from backscroll.sources.claude_code.reader import UnitReader  # start-up: not needed to list units

        return UnitReader()

    def row_keys(self, place: str) -> tuple[str, ...]:
        """Return the possible keys of a row in the database of version 0.2."""
        return (place, place.partition(" ")[0])

    def result_call_ids(self, record: bytes) -> list[str]:
        return string_values(record, "tool_use_id") if b"tool_use_id" in record else []

    def retention(
        self, root: Path, now: datetime, fingerprints: Mapping[str, bytes | None] | None = None
    ) -> Retention | None:
        from backscroll.sources.claude_code.retention import retention  # start-up time

        return retention(root, now, fingerprints)

    def backup_files(self, root: Path) -> Iterator[SourceFile]:
        from backscroll.sources.claude_code.backup import backup_files  # start-up: loads msgspec

        return backup_files(root)

    def remove_secrets(self, connection: Connection) -> None:
        """Do nothing: the database of version 0.2 has no credentials."""

    def copy_secrets(self, current: Connection, restored: Connection) -> None:
        """Do nothing, as in `remove_secrets`."""

    def select_files(self, root: Path, session_ids: Collection[str], paths: Collection[str]) -> SelectedFiles:
        from backscroll.sources.claude_code import session_selection  # start-up: loads msgspec

        return session_selection.select_files(root, session_ids, paths)

    def copy_sessions(
        self, path: str, source: Connection, target: Connection, session_ids: Collection[str]
    ) -> bool:
        from backscroll.sources.claude_code import session_selection  # start-up: loads msgspec

        return session_selection.copy_sessions(source, target, session_ids)

    def select_records(self, path: str, content: Iterable[bytes], session_ids: Collection[str]) -> bytes:
        from backscroll.sources.claude_code import session_selection  # start-up: loads msgspec

        return session_selection.select_records(path, content, session_ids)

    def plan_insert(self, copy: Path, root: Path, *, force: bool) -> InsertPlan:
        from backscroll.sources.claude_code.writing.insert import plan_insert  # start-up: loads msgspec

        return plan_insert(copy, root)

    def relocate(self, files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
        from backscroll.sources.claude_code.writing.relocation import ClaudeCodeRelocation  # start-up time

        return ClaudeCodeRelocation(files, maps, root)

    def resume_command(self, session: Resumable, machine: Machine) -> Command | Refusal:
        from backscroll.sources.claude_code.resume import resume_command  # start-up time

        return resume_command(session, machine)

    def hook_session(self, payload: Mapping[str, Any]) -> str | None:
        from backscroll.sources.claude_code.hooks import hook_session  # start-up time

        return hook_session(payload)

    def hook_workspace(self, payload: Mapping[str, Any]) -> Workspace | None:
        from backscroll.sources.claude_code.hooks import hook_workspace  # start-up time

        return hook_workspace(payload)

    def read_hook_events(self, session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
        from backscroll.sources.claude_code.hooks import read_hook_events  # start-up time

        return read_hook_events(session_id, events)

    def hook_usage(self, session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
        from backscroll.sources.claude_code.hooks import hook_usage  # start-up time

        return hook_usage(session_id, events)

    def hook_file(self, machine: Machine, root: Path | None = None) -> HookFile:
        from backscroll.sources.claude_code.hooks import hook_file  # start-up time

        return hook_file(machine, root)

    def open_process(self, root: Path, session_id: str) -> int | None:
        """Return the process id from the tool's registry of running processes."""
        from backscroll.sources.claude_code.resume import open_process  # start-up time

        return open_process(root, session_id)

    def plan_restore(self, session: ArchivedSession) -> SessionPlan:
        from backscroll.sources.claude_code.writing import plans  # start-up time

        return plans.plan_restore(session)

    def plan_move(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        from backscroll.sources.claude_code.writing import plans  # start-up time

        return plans.plan_move(session, target, keep_cwd=keep_cwd)

    def plan_copy(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        from backscroll.sources.claude_code.writing import plans  # start-up time

        return plans.plan_copy(session, target, keep_cwd=keep_cwd)

    def blocking_processes(self, root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
        """Return the processes that have one of the sessions open. Others do not matter."""
        from backscroll.sources.claude_code.resume import blocking_processes  # start-up time

        return blocking_processes(root, session_ids)
