"""Cursor, the editor: ``state.vscdb`` databases below a user-data folder with a subfolder ``User/``.

docs/formats/cursor.md describes the stores and the known versions.

locations       paths of the databases
reader          list the units below a root and parse them; records for bug reports
user_data       open databases and cached lists of one root
database/       one database: records with the fields that are read, families of keys, session lists
session/        parse one session: messages, tool calls, title, metadata, workspace
uri             addresses in Cursor's records: paths, file URIs, remote hosts
side_databases  titles and models from the editor's other databases
raw_rows        rows that the archive keeps
backup          files and credentials in a backup, all or of some sessions
hooks           settings file and events of hooks
resume          the command that opens a session's workspace
writing/        plan moves, copies and restores of sessions
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.model.store import HOOK_EVENTS, HOOK_USAGE, SESSION, StoreKind, Unit, UnitKind
from backscroll.readers.files import change_token
from backscroll.sources.cursor import locations
from backscroll.sources.protocols import (
    LOG,
    UNREADABLE,
    ChangeMarkers,
    Closeable,
    DatabaseSchema,
    ImageFiles,
    RawRecords,
    RawRows,
    RecordLookup,
    Source,
    Watchable,
)

if TYPE_CHECKING:
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model.mcp_client import McpClient
    from backscroll.model.stream import Checkpoint, Item, RawRow
    from backscroll.sources.capabilities import (
        Backup,
        CodeTracking,
        FolderIds,
        Hooks,
        ResumeCommands,
        SessionWriter,
    )
    from backscroll.sources.cursor.reader import UserDataReader


class Cursor(Source, ChangeMarkers, Closeable, ImageFiles, RawRecords, RawRows, RecordLookup, Watchable):
    """Read-only access to the history of the Cursor editor.

    Reading units in the order of `units` reads a large database from front to back. With a cold disk cache,
    this is several times faster than any other order.
    """

    name = locations.SOURCE
    platform = "cursor"
    stores = (
        StoreKind("bubbles"),  # a row per message
        StoreKind("inline"),  # all messages in one row
        StoreKind("chat"),  # the old chat panel
        StoreKind("graph"),  # the model's context; replaces lost messages
        StoreKind("search", "text"),
        StoreKind("prompts", "prompts"),
        HOOK_EVENTS,
        HOOK_USAGE,
    )
    unit_kinds = (
        SESSION,
        UnitKind("agent"),
        UnitKind("prompts", is_single=False, is_prompt_log=True),
        UnitKind("index", is_single=False),
        UnitKind(locations.TITLES_KIND, is_single=False),
        LOG,
        UNREADABLE,
    )
    schema = DatabaseSchema(
        databases={
            "state.vscdb": (
                "create table ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
                "create table cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
                "pragma user_version = 1",
            )
        },
        values={"ItemTable": ("key", "value"), "cursorDiskKV": ("key", "value")},
        tables={
            "composerHeaders": "composerId TEXT PRIMARY KEY",
            "conversations": "fts_rowid INTEGER PRIMARY KEY",
            "conversation_fts": "using fts5(title, body, branches)",
        },
    )
    color = ("#3b5b92", "#9db8e8")

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
        units += [Unit(self.name, root_text, path, kind=UNREADABLE.name) for path in unreadable]
        logs = locations.logs_without_database(root)
        units += [Unit(self.name, root_text, path, kind=LOG.name) for path in logs]
        return units

    def watched_paths(self, root: Path) -> list[Path]:
        return locations.watched_paths(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse a unit. ``since`` is ignored, because Cursor rewrites the rows of a session as it grows."""
        return self._reader(Path(unit.root)).read(unit)

    def file_ends(self) -> tuple[str, ...]:
        return ("state.vscdb",)

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session and its list entries; none for the unit of a database."""
        return self._reader(Path(unit.root)).raw_rows(unit)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return the rows of a session, or the lists of a database; none if they cannot be read."""
        return self._reader(Path(unit.root)).raw_records(unit)

    def row_keys(self, place: str) -> tuple[str, ...]:
        from backscroll.sources.cursor_graph import row_keys  # start-up: not needed to list units

        return row_keys(place)

    def result_call_ids(self, record: bytes) -> list[str]:
        from backscroll.sources.cursor_graph import result_call_ids

        return result_call_ids(record)

    def image_file(self, root: Path, attached_path: str) -> Path | None:
        """Return a pasted image, also if its path is relative or that of another machine."""
        return locations.pasted_image(root, attached_path)

    def close(self) -> None:
        """Close all databases and discard prefetched rows. Cached session lists are kept."""
        for reader in self._readers.values():
            reader.close()

    def _reader(self, root: Path) -> UserDataReader:
        from backscroll.sources.cursor.reader import UserDataReader  # start-up: not needed without a change

        return self._readers.setdefault(str(root), UserDataReader(root))

    # Capabilities, imported on first use

    def resume(self) -> ResumeCommands:
        from backscroll.sources.cursor import resume

        return resume

    def backup(self) -> Backup:
        from backscroll.sources.cursor import backup

        return backup

    def writer(self) -> SessionWriter:
        from backscroll.sources.cursor.writing import session_writer

        return session_writer

    def folder_ids(self) -> FolderIds:
        from backscroll.sources.cursor.writing import folders

        return folders

    def hooks(self) -> Hooks:
        from backscroll.sources.cursor import hooks

        return hooks

    def code_tracking(self) -> CodeTracking:
        from backscroll.sources.cursor import side_databases

        return side_databases

    def mcp_clients(self, machine: Machine) -> tuple[McpClient, ...]:
        from backscroll.model.mcp_client import McpClient

        return (McpClient(self.name, "Cursor", machine.home / ".cursor" / "mcp.json"),)
