"""Cursor, the editor: ``state.vscdb`` databases below a user-data folder with a subfolder ``User/``.

docs/formats/cursor.md describes the stores and the known versions.

locations       paths of the databases
listing         units below a root
reader          parse units; rows and records of a unit
user_data       open databases and cached lists of one root
database/       rows and session lists of one database
session/        parse one session
workspace       the folder of a session
uri             addresses in Cursor's records: paths, file URIs, remote hosts
prompt_log      prompts of a workspace that has no session
side_databases  titles and models from the editor's other databases
raw_rows        rows that the archive keeps, with list_entries
raw_records     decoded records for bug reports
backup          files and credentials in a backup
hooks           settings file and events of hooks
session_selection   files and rows of some sessions, for a backup
resume          the command that opens a session's workspace
writing/        plan moves, copies and restores of sessions
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.model import Unit
from backscroll.readers.sqlite.change import change_token
from backscroll.sources.cursor import locations
from backscroll.sources.cursor_graph.record_lookup import result_call_ids, row_keys
from backscroll.sources.protocols import (
    BackupContents,
    ChangeMarkers,
    Closeable,
    CodeTracking,
    FolderIds,
    HookEvents,
    HookSettings,
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
    import os
    from sqlite3 import Connection
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow, Workspace
    from backscroll.model.code.commit import TrackedCode
    from backscroll.model.code.hooks import HookEvent, HookFile
    from backscroll.model.resume import Command, Resumable
    from backscroll.model.safekeeping.backup import BackupFolder, InsertPlan, SelectedFiles, SourceFile
    from backscroll.model.safekeeping.path_maps import PathMaps
    from backscroll.model.safekeeping.transfer import (
        ArchivedSession,
        BlockingProcess,
        SessionPlan,
        StoredSession,
    )
    from backscroll.sources.cursor.reader import UserDataReader

__all__ = ["Cursor"]


class Cursor(
    BackupContents,
    ChangeMarkers,
    Closeable,
    CodeTracking,
    FolderIds,
    HookEvents,
    HookSettings,
    PathMapping,
    RawRecords,
    RawRows,
    RecordLookup,
    ResumeCommands,
    SessionSelection,
    SessionWriter,
    Watchable,
):
    """Read-only access to the history of the Cursor editor.

    Reading units in the order of `units` reads a large database from front to back. With a cold disk cache,
    this is several times faster than any other order.
    """

    name = "cursor"
    platform = "cursor"

    def __init__(self) -> None:
        self._readers: dict[str, UserDataReader] = {}  # by root

    def roots(self, machine: Machine) -> list[Path]:
        """Return the user-data folders of all builds of the editor."""
        return locations.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        """List one unit per session, and one per database for the rows that belong to no session."""
        return self._reader(root).units()

    def change_markers(self, root: Path) -> list[Unit]:
        """Return the units of the databases. A change of any session changes one of them."""
        root_text = str(root)
        found = [(path, "index") for path, _ in locations.database_paths(root)]
        found += [(str(path), locations.TITLES_KIND) for path in locations.side_databases(root)]
        units = [Unit(self.name, root_text, path, "", change_token(path), 0, kind) for path, kind in found]
        unreadable = map(str, locations.unreadable_folders(root))
        units += [Unit(self.name, root_text, path, kind=locations.UNREADABLE_KIND) for path in unreadable]
        return units

    def watched_paths(self, root: Path) -> list[Path]:
        return locations.watched_paths(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse a unit. ``since`` is ignored, because Cursor rewrites the rows of a session as it grows."""
        return self._reader(Path(unit.root)).read(unit)

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session and its list entries; none for the unit of a database."""
        return self._reader(Path(unit.root)).raw_rows(unit)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return the rows of a session, or the lists of a database; none if they cannot be read."""
        return self._reader(Path(unit.root)).raw_records(unit)

    def tracked_code(self, root: Path) -> TrackedCode:
        """Return what the editor tracks in ``ai-code-tracking.db``."""
        from backscroll.sources.cursor.side_databases import SideDatabases

        return SideDatabases(root).tracked_code()

    def row_keys(self, place: str) -> tuple[str, ...]:
        return row_keys(place)

    def result_call_ids(self, record: bytes) -> list[str]:
        return result_call_ids(record)

    def backup_files(self, root: Path) -> Iterator[SourceFile]:
        from backscroll.sources.cursor.backup import backup_files  # start-up: loads msgspec

        return backup_files(root)

    def remove_secrets(self, connection: Connection) -> None:
        from backscroll.sources.cursor.backup import remove_secrets  # start-up: loads msgspec

        remove_secrets(connection)

    def copy_secrets(self, current: Connection, restored: Connection) -> None:
        from backscroll.sources.cursor.backup import copy_secrets  # start-up: loads msgspec

        copy_secrets(current, restored)

    def select_files(self, root: Path, session_ids: Collection[str], paths: Collection[str]) -> SelectedFiles:
        from backscroll.sources.cursor import session_selection  # start-up: loads msgspec

        return session_selection.select_files(root, session_ids)

    def copy_sessions(
        self, path: str, source: Connection, target: Connection, session_ids: Collection[str]
    ) -> bool:
        from backscroll.sources.cursor import session_selection  # start-up: loads msgspec

        return session_selection.copy_sessions(path, source, target, session_ids)

    def select_records(self, path: str, content: Iterable[bytes], session_ids: Collection[str]) -> bytes:
        """Return the file as it is: the ``workspace.json`` of a session's workspace."""
        return b"".join(content)

    def plan_insert(self, copy: Path, root: Path, *, force: bool) -> InsertPlan:
        from backscroll.sources.cursor.writing.insert import plan_insert  # start-up: loads msgspec

        return plan_insert(copy, root, force=force)

    def relocate(self, files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
        from backscroll.sources.cursor.writing.relocation import CursorRelocation  # start-up time

        return CursorRelocation(files, maps, old_root, root)

    def resume_command(self, session: Resumable, machine: Machine) -> Command:
        from backscroll.sources.cursor.resume import resume_command  # start-up: loads msgspec

        return resume_command(session, machine)

    def folder_id(self, path: str, stat: os.stat_result) -> str:
        from backscroll.sources.cursor.writing.workspace_target import storage_id  # start-up time

        return storage_id(path, stat)

    def hook_session(self, payload: Mapping[str, Any]) -> str | None:
        from backscroll.sources.cursor.hooks import hook_session  # start-up time

        return hook_session(payload)

    def hook_workspace(self, payload: Mapping[str, Any]) -> Workspace | None:
        from backscroll.sources.cursor.hooks import hook_workspace  # start-up time

        return hook_workspace(payload)

    def read_hook_events(self, session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
        from backscroll.sources.cursor.hooks import read_hook_events  # start-up time

        return read_hook_events(session_id, events)

    def hook_usage(self, session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
        from backscroll.sources.cursor.hooks import hook_usage  # start-up time

        return hook_usage(session_id, events)

    def hook_file(self, machine: Machine, root: Path | None = None) -> HookFile:
        from backscroll.sources.cursor.hooks import hook_file  # start-up time

        return hook_file(machine)

    def plan_restore(self, session: ArchivedSession) -> SessionPlan:
        return self._writer.plan_restore(session)

    def plan_move(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        return self._writer.plan_move(session, target, keep_cwd=keep_cwd)

    def plan_copy(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        return self._writer.plan_copy(session, target, keep_cwd=keep_cwd)

    def blocking_processes(self, root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
        return self._writer.blocking_processes(root, session_ids)

    def close(self) -> None:
        """Close all databases and discard prefetched rows. Cached session lists are kept."""
        for reader in self._readers.values():
            reader.close()

    def _reader(self, root: Path) -> UserDataReader:
        from backscroll.sources.cursor.reader import UserDataReader  # start-up: not needed without a change

        return self._readers.setdefault(str(root), UserDataReader(root))

    @property
    def _writer(self) -> SessionWriter:
        from backscroll.sources.cursor.writing.session_writer import (
            CursorWriter,
        )  # start-up: only needed for changes

        return CursorWriter()
