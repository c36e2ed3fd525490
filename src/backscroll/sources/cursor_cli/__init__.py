"""The Cursor CLI: one ``store.db`` per session below ``~/.cursor/chats``, and text transcripts.

docs/formats/cursor-cli.md describes the format and its versions.

locations          find stores, drafts, transcripts and prompt lists
reader             parse the units of one root
store_reader       read a session from its store
blob_rows          the rows of a store
metadata           metadata of a session
session_header     opening, closing and nested subagents of a session
copied_messages    mark the messages of a copied session
recovery           recover a conversation without a valid root
drafts             sessions without a conversation, and prompt lists
transcript_paths   parse the path of a transcript
transcript_reader  read a session from its transcript
transcript_jsonl   transcripts as JSON lines
transcript_text    transcripts as plain text
workspace          find the workspace of a session
model_names        display names of models
raw_rows           the rows that the archive keeps
raw_records        decoded records for bug reports
backup             files, credentials and selected sessions in a backup
resume             build the command that resumes a session
writing/           plan moves, copies and restores of sessions
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.sources.cursor_cli import locations
from backscroll.sources.cursor_graph.record_lookup import result_call_ids, row_keys
from backscroll.sources.protocols import (
    BackupContents,
    Closeable,
    PathLookup,
    PathMapping,
    RawRecords,
    RawRows,
    RecordLookup,
    Relocation,
    ResumeCommands,
    SessionSelection,
    SessionWriter,
    Watchable,
)

if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow, Unit
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
    from backscroll.sources.cursor_cli.reader import RootReader

__all__ = ["CursorCli"]


class CursorCli(
    BackupContents,
    Closeable,
    PathLookup,
    PathMapping,
    RawRecords,
    RawRows,
    RecordLookup,
    ResumeCommands,
    SessionSelection,
    SessionWriter,
    Watchable,
):
    """Sessions of ``cursor-agent``, in a terminal or in an editor that uses ACP."""

    name = locations.SOURCE
    platform = "cursor"

    def __init__(self) -> None:
        self._readers: dict[str, RootReader] = {}  # by root

    def roots(self, machine: Machine) -> list[Path]:
        return locations.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        self._readers.pop(str(root), None)  # its catalog may be outdated
        return locations.find_units(root)

    def units_at(self, root: Path, paths: Collection[str]) -> list[Unit] | None:
        self._readers.pop(str(root), None)
        return locations.find_units_at(root, paths)

    def watched_paths(self, root: Path) -> list[Path]:
        return locations.watched_paths(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse a unit from its start, because stores and transcripts may be rewritten."""
        return self._reader(unit.root).read(unit)

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a store and its ``meta.json``; none for a transcript."""
        return self._reader(unit.root).raw_rows(unit)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        return self._reader(unit.root).raw_records(unit)

    def row_keys(self, place: str) -> tuple[str, ...]:
        return row_keys(place)

    def result_call_ids(self, record: bytes) -> list[str]:
        return result_call_ids(record)

    def backup_files(self, root: Path) -> Iterator[SourceFile]:
        from backscroll.sources.cursor_cli.backup import backup_files  # start-up: loads msgspec

        return backup_files(root)

    def remove_secrets(self, connection: Connection) -> None:
        from backscroll.sources.cursor_cli.backup import remove_secrets  # start-up: loads msgspec

        remove_secrets(connection)

    def copy_secrets(self, current: Connection, restored: Connection) -> None:
        from backscroll.sources.cursor_cli.backup import copy_secrets  # start-up: loads msgspec

        copy_secrets(current, restored)

    def select_files(self, root: Path, session_ids: Collection[str], paths: Collection[str]) -> SelectedFiles:
        from backscroll.sources.cursor_cli.backup import select_files  # start-up: loads msgspec

        return select_files(root, session_ids, paths)

    def copy_sessions(
        self, path: str, source: Connection, target: Connection, session_ids: Collection[str]
    ) -> bool:
        """Copy the rows of the code tracking database. A store contains one session."""
        from backscroll.sources.cursor_cli.backup import copy_sessions  # start-up: loads msgspec

        return copy_sessions(source, target, session_ids)

    def select_records(self, path: str, content: Iterable[bytes], session_ids: Collection[str]) -> bytes:
        """Return no bytes: no file has records of several sessions."""
        return b""

    def plan_insert(self, copy: Path, root: Path, *, force: bool) -> InsertPlan:
        from backscroll.sources.cursor_cli.backup import plan_insert  # start-up: loads msgspec

        return plan_insert(copy, root)

    def relocate(self, files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
        from backscroll.sources.cursor_cli.writing.relocation import CursorCliRelocation  # start-up time

        return CursorCliRelocation(files, maps)

    def resume_command(self, session: Resumable, machine: Machine) -> Command | Refusal:
        from backscroll.sources.cursor_cli.resume import resume_command  # start-up: loads msgspec

        return resume_command(session, machine)

    def plan_restore(self, session: ArchivedSession) -> SessionPlan:
        return self._writer.plan_restore(session)

    def plan_move(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        return self._writer.plan_move(session, target, keep_cwd=keep_cwd)

    def plan_companion_move(self, session: StoredSession, target: Path) -> ChangePlan:
        return self._writer.plan_companion_move(session, target)

    def plan_copy(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        return self._writer.plan_copy(session, target, keep_cwd=keep_cwd)

    def blocking_processes(self, root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
        return self._writer.blocking_processes(root, session_ids)

    def close(self) -> None:
        self._readers.clear()

    def _reader(self, root: str) -> RootReader:
        from backscroll.sources.cursor_cli.reader import RootReader  # start-up: not needed without a change

        return self._readers.setdefault(root, RootReader(root))

    @property
    def _writer(self) -> SessionWriter:
        from backscroll.sources.cursor_cli.writing.session_writer import (
            CursorCliWriter,
        )  # start-up: only needed for changes

        return CursorCliWriter()
