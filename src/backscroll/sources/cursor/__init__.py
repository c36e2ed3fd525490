"""Cursor, the editor: ``state.vscdb`` databases below a user-data folder that holds ``User/``.

docs/formats/cursor.md describes the stores and the versions met.
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
    """The history of Cursor's editor, opened for reading only.

    Units come in an order that reads a large database from front to back; reading
    them in it is several times faster on a cold disk than any other order.
    """

    name = "cursor"
    platform = "cursor"

    def __init__(self) -> None:
        self._user_data: dict[str, UserData] = {}

    def roots(self, machine: Machine) -> list[Path]:
        """The user-data folders of every build of the editor."""
        return locations.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        """One unit per session, and one per database for the rows that belong to none."""
        from backscroll.sources.cursor import listing

        user_data = self._user_data_of(root)
        user_data.refresh()
        return listing.units(user_data)

    def change_markers(self, root: Path) -> list[Unit]:
        """Return the databases: nothing is written anywhere else."""
        base = str(root)
        found = [(path, "index") for path, _ in locations.database_files(root)]
        found += [(str(path), locations.TITLES) for path in locations.side_databases(root)]
        return [Unit(self.name, base, path, "", change_token(path), 0, kind) for path, kind in found]

    def watched_paths(self, root: Path) -> list[Path]:
        return locations.watched_paths(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """All that a unit says; ``since`` is of no use, for a session's rows are written anew as it grows."""
        # Loaded on first use: listing units does not need them.
        from backscroll.model import Origin, Problem, RecordCounts
        from backscroll.readers.sqlite import problem_code

        try:
            yield from self._items(unit)
        except (BackscrollError, sqlite3.Error) as error:
            counts = RecordCounts()
            counts.count("database", "problems")
            yield Problem(Origin(unit.path, unit.key or "database"), problem_code(error), str(error))
            yield counts

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """The rows of one session, and the entries of lists that name it; of a whole database none."""
        from backscroll.sources.cursor import raw_rows

        user_data = self._user_data_of(Path(unit.root))
        file = _database_file(user_data, unit)
        kind, colon, name = unit.key.partition(":")
        if not unit.key:
            return iter(())
        if kind == "tab" and colon:
            return raw_rows.tab_rows(user_data, file, name)
        if kind == "composer" and colon:
            return raw_rows.inline_rows(user_data, file, name)
        if unit.kind == "prompts":
            return raw_rows.log_rows(user_data, file)
        return raw_rows.session_rows(user_data, file.path, unit.key)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """A session's rows by key family, a database's lists by key; what cannot be read gives nothing."""
        from backscroll.sources.cursor import raw_records

        user_data = self._user_data_of(Path(unit.root))
        path = Path(unit.path)
        try:
            if not unit.key and unit.kind != locations.TITLES:
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
        """Close all databases and forget what was fetched ahead, but not what databases listed."""
        for user_data in self._user_data.values():
            user_data.close()

    def _user_data_of(self, root: Path) -> UserData:
        from backscroll.sources.cursor.user_data import UserData

        return self._user_data.setdefault(str(root), UserData(root))

    def _items(self, unit: Unit) -> Iterator[Item]:
        from backscroll.sources.cursor import listing, prompt_log
        from backscroll.sources.cursor.database import unowned_rows
        from backscroll.sources.cursor.session import chat_tabs, composer

        user_data = self._user_data_of(Path(unit.root))
        file = _database_file(user_data, unit)
        kind, colon, name = unit.key.partition(":")
        if unit.kind == locations.TITLES:
            return user_data.side_databases.count(file.path)
        if not unit.key:
            return unowned_rows.read(user_data, file, listing.owned(user_data, file))
        if kind == "tab" and colon:
            return chat_tabs.read_tab(user_data, file, name, unit.session_id or name)
        if kind == "composer" and colon:
            return chat_tabs.read_inline(user_data, file, name)
        if unit.kind == "prompts":
            return prompt_log.read(user_data, file.path, file.storage)
        return composer.read(user_data, file.path, unit.key)


def _database_file(user_data: UserData, unit: Unit) -> DatabaseFile:
    from backscroll.sources.cursor.user_data import DatabaseFile

    path = Path(unit.path)
    return DatabaseFile(path, "" if path == user_data.global_path else path.parent.name)
