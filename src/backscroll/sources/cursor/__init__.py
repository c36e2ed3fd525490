"""Cursor, the editor: ``state.vscdb`` databases below a user-data folder with a subfolder ``User/``.

docs/formats/cursor.md describes the stores and the known versions.

locations       paths of the databases
listing         units below a root
user_data       open databases and cached lists of one root
database/       rows and session lists of one database
session/        parse one session
workspace       the folder of a session
prompt_log      prompts of a workspace that has no session
side_databases  titles and models from the editor's other databases
raw_rows        rows that the archive keeps, with list_entries
raw_records     decoded records for bug reports
resume          the command that opens a session's workspace
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.errors import BackscrollError
from backscroll.model import Unit
from backscroll.readers.sqlite_change import change_token
from backscroll.sources.cursor import locations
from backscroll.sources.protocols import (
    ChangeMarkers,
    Closeable,
    RawRecords,
    RawRows,
    RecordLookup,
    ResumeCommands,
    Watchable,
)

if TYPE_CHECKING:
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow
    from backscroll.model.tool import Command, Resumable
    from backscroll.sources.cursor.user_data import DatabaseFile, UserData

__all__ = ["Cursor"]


class Cursor(ChangeMarkers, Closeable, RawRecords, RawRows, RecordLookup, ResumeCommands, Watchable):
    """Read-only access to the history of the Cursor editor.

    Reading units in the order of `units` reads a large database from front to back. With a cold disk cache,
    this is several times faster than any other order.
    """

    name = "cursor"
    platform = "cursor"

    def __init__(self) -> None:
        self._user_data: dict[str, UserData] = {}

    def roots(self, machine: Machine) -> list[Path]:
        """Return the user-data folders of all builds of the editor."""
        return locations.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        """List one unit per session, and one per database for the rows that belong to no session."""
        from backscroll.sources.cursor import listing

        user_data = self._user_data_of(root)
        user_data.refresh()
        return listing.list_units(user_data)

    def change_markers(self, root: Path) -> list[Unit]:
        """Return the units of the databases. A change of any session changes one of them."""
        root_text = str(root)
        found = [(path, "index") for path, _ in locations.database_paths(root)]
        found += [(str(path), locations.TITLES_KIND) for path in locations.side_databases(root)]
        return [Unit(self.name, root_text, path, "", change_token(path), 0, kind) for path, kind in found]

    def watched_paths(self, root: Path) -> list[Path]:
        return locations.watched_paths(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse a unit. ``since`` is ignored, because Cursor rewrites the rows of a session as it grows."""
        # Loaded on first use: listing units does not need them.
        from backscroll.model import Origin, Problem, RecordCounts
        from backscroll.readers.sqlite import problem_code

        try:
            yield from self._read_items(unit)
        except (BackscrollError, sqlite3.Error) as error:
            counts = RecordCounts()
            counts.count("database", "problems")
            yield Problem(Origin(unit.path, unit.key or "database"), problem_code(error), str(error))
            yield counts

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session and its list entries; none for the unit of a database."""
        from backscroll.sources.cursor import raw_rows

        user_data = self._user_data_of(Path(unit.root))
        file = _database_file(user_data, unit)
        kind, colon, id = unit.key.partition(":")
        if not unit.key:
            return iter(())
        if kind == "tab" and colon:
            return raw_rows.tab_rows(user_data, file, id)
        if kind == "composer" and colon:
            return raw_rows.inline_rows(user_data, file, id)
        if unit.kind == "prompts":
            return raw_rows.prompt_log_rows(user_data, file)
        return raw_rows.session_rows(user_data, file.path, unit.key)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return the rows of a session, or the lists of a database; none if they cannot be read."""
        from backscroll.sources.cursor import raw_records

        user_data = self._user_data_of(Path(unit.root))
        path = Path(unit.path)
        try:
            if not unit.key and unit.kind != locations.TITLES_KIND:
                yield from raw_records.list_records(user_data, path)
            elif unit.key and unit.kind != "prompts" and not unit.key.startswith(("tab:", "composer:")):
                yield from raw_records.session_records(user_data, path, unit.key)
        except (BackscrollError, sqlite3.Error):
            return

    def row_keys(self, place: str) -> tuple[str, ...]:
        from backscroll.sources.cursor_graph.record_lookup import row_keys  # start-up time

        return row_keys(place)

    def result_call_ids(self, record: bytes) -> list[str]:
        from backscroll.sources.cursor_graph.record_lookup import result_call_ids  # start-up time

        return result_call_ids(record)

    def resume_command(self, session: Resumable, machine: Machine) -> Command:
        from backscroll.sources.cursor.resume import resume_command

        return resume_command(session, machine)

    def close(self) -> None:
        """Close all databases and discard prefetched rows. Cached session lists are kept."""
        for user_data in self._user_data.values():
            user_data.close()

    def _user_data_of(self, root: Path) -> UserData:
        from backscroll.sources.cursor.user_data import UserData

        return self._user_data.setdefault(str(root), UserData(root))

    def _read_items(self, unit: Unit) -> Iterator[Item]:
        from backscroll.sources.cursor import listing, prompt_log
        from backscroll.sources.cursor.database import unowned_rows
        from backscroll.sources.cursor.session import chat_tabs, composer

        user_data = self._user_data_of(Path(unit.root))
        file = _database_file(user_data, unit)
        kind, colon, id = unit.key.partition(":")
        if unit.kind == locations.TITLES_KIND:
            return user_data.side_databases.read_counts(file.path)
        if not unit.key:
            return unowned_rows.read(user_data, file, listing.sessions_with_units(user_data, file))
        if kind == "tab" and colon:
            return chat_tabs.read_tab(user_data, file, id, unit.session_id or id)
        if kind == "composer" and colon:
            return chat_tabs.read_inline(user_data, file, id)
        if unit.kind == "prompts":
            return prompt_log.read(user_data, file.path, file.storage_id)
        return composer.read(user_data, file.path, unit.key)


def _database_file(user_data: UserData, unit: Unit) -> DatabaseFile:
    from backscroll.sources.cursor.user_data import DatabaseFile

    path = Path(unit.path)
    return DatabaseFile(path, "" if path == user_data.global_path else path.parent.name)
