"""Parse the units of one user-data folder."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backscroll.errors import BackscrollError
from backscroll.model import Item, Origin, Problem, RawRow, RecordCounts, Unit
from backscroll.readers.read_faults import read_log_without_database, read_unlisted_folder
from backscroll.readers.sqlite.connection import problem_code
from backscroll.sources.cursor import listing, locations, prompt_log, raw_records, raw_rows
from backscroll.sources.cursor.database import unowned_rows
from backscroll.sources.cursor.session import chat_tabs, composer
from backscroll.sources.cursor.user_data import DatabaseFile, UserData

__all__ = ["UserDataReader"]


class UserDataReader:
    """Reads the units below one root. Databases stay open until `close`."""

    def __init__(self, root: Path) -> None:
        self._user_data = UserData(root)

    def units(self) -> Iterator[Unit]:
        """List the units as they are now."""
        self._user_data.refresh()
        return listing.list_units(self._user_data)

    def read(self, unit: Unit) -> Iterator[Item]:
        """Parse a unit. A database that cannot be read yields a problem."""
        try:
            yield from self._read(unit)
        except (BackscrollError, sqlite3.Error) as error:
            counts = RecordCounts()
            counts.count("database", "problems")
            yield Problem(Origin(unit.path, unit.key or "database"), problem_code(error), str(error))
            yield counts

    def _read(self, unit: Unit) -> Iterator[Item]:
        user_data, file = self._user_data, self._database_file(unit)
        kind, colon, id = unit.key.partition(":")
        if unit.kind == locations.UNREADABLE_KIND:
            return read_unlisted_folder(unit)
        if unit.kind == locations.LOG_KIND:
            return read_log_without_database(unit)
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

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session and its list entries; none for the unit of a database."""
        user_data, file = self._user_data, self._database_file(unit)
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
        path = Path(unit.path)
        try:
            if not unit.key and unit.kind != locations.TITLES_KIND:
                yield from raw_records.list_records(self._user_data, path)
            elif unit.key and unit.kind != "prompts" and not unit.key.startswith(("tab:", "composer:")):
                yield from raw_records.session_records(self._user_data, path, unit.key)
        except (BackscrollError, sqlite3.Error):
            return

    def close(self) -> None:
        """Close all databases and discard prefetched rows. Cached session lists are kept."""
        self._user_data.close()

    def _database_file(self, unit: Unit) -> DatabaseFile:
        path = Path(unit.path)
        return DatabaseFile(path, "" if path == self._user_data.global_path else path.parent.name)
