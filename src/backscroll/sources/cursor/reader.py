"""List the units of one user-data folder, and parse them."""

import sqlite3
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from msgspec import Raw

from backscroll.errors import BackscrollError
from backscroll.model.message import Origin
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Item, RawRow, RecordCounts
from backscroll.readers.read_faults import read_log_without_database, read_unlisted_folder
from backscroll.readers.sqlite import as_bytes, problem_code
from backscroll.sources.cursor import locations, raw_rows
from backscroll.sources.cursor.database import session_lists, unowned_rows
from backscroll.sources.cursor.database.decode import UndecodableError, as_int, as_text, decode
from backscroll.sources.cursor.database.keys import RECORD_FAMILIES, RowSummary, has_table
from backscroll.sources.cursor.database.records import ComposerHeader
from backscroll.sources.cursor.database.session_rows import RelatedRows
from backscroll.sources.cursor.locations import SOURCE
from backscroll.sources.cursor.session import chat_tabs, composer, prompt_log
from backscroll.sources.cursor.session.composer import is_subagent_entry
from backscroll.sources.cursor.user_data import DatabaseFile, UserData
from backscroll.sources.protocols import LOG, UNREADABLE

_SECRET_FIELDS = frozenset({"blobEncryptionKey", "speculativeSummarizationEncryptionKey"})


class UserDataReader:
    """Reads the units below one root. Databases stay open until `close`."""

    def __init__(self, root: Path) -> None:
        self._user_data = UserData(root)

    def units(self) -> Iterator[Unit]:
        """List the units as they are now."""
        self._user_data.refresh()
        return list_units(self._user_data)

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
        if unit.kind == UNREADABLE.name:
            return read_unlisted_folder(unit)
        if unit.kind == LOG.name:
            return read_log_without_database(unit)
        if unit.kind == locations.TITLES_KIND:
            return user_data.side_databases.read_counts(file.path)
        if not unit.key:
            return unowned_rows.read(user_data, file, _sessions_with_units(user_data, file))
        if kind == "tab" and colon:
            return chat_tabs.read_tab(user_data, file, id, unit.session_id or id)
        if kind == "composer" and colon:
            return composer.read_inline(user_data, file, id)
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
                yield from _list_records(self._user_data, path)
            elif unit.key and unit.kind != "prompts" and not unit.key.startswith(("tab:", "composer:")):
                yield from _session_records(self._user_data, path, unit.key)
        except (BackscrollError, sqlite3.Error):
            return

    def close(self) -> None:
        """Close all databases and discard prefetched rows. Cached session lists are kept."""
        self._user_data.close()

    def _database_file(self, unit: Unit) -> DatabaseFile:
        path = Path(unit.path)
        return DatabaseFile(path, "" if path == self._user_data.global_path else path.parent.name)


# Units: sessions from keys, titles from lists. No message is decoded.


def list_units(user_data: UserData) -> Iterator[Unit]:
    """Return sessions with rows, newest first, then conversations in lists, then the databases themselves.

    A database that could not be read has an empty fingerprint: it is read again next time, and its sessions
    do not count as deleted.
    """
    files = user_data.databases()
    for file in files:  # read both while a database is open
        user_data.row_summaries(file.path)
        user_data.database_lists(file)
    seen_sessions: set[str] = set()
    for file in files:
        yield from _session_units(user_data, file, seen_sessions)
    seen_tabs: set[str] = set()
    storages_with_sessions = _storages_with_sessions(user_data)
    for file in files:
        yield from _conversation_units(user_data, file, seen_sessions, seen_tabs, storages_with_sessions)
    yield from _database_units(user_data)


def _session_units(user_data: UserData, file: DatabaseFile, seen_sessions: set[str]) -> Iterator[Unit]:
    """Return sessions with rows. For the global database, add those that are only in a list."""
    summaries = {
        session_id: summary
        for session_id, summary in user_data.row_summaries(file.path).items()
        if session_id not in seen_sessions
    }
    if not file.storage_id:
        in_workspaces = {
            session_id
            for other in user_data.databases()
            if other.storage_id
            for session_id in user_data.row_summaries(other.path)
        }
        for session_id in (
            *user_data.global_list().entries,
            *_sessions_without_rows(user_data, summaries.keys()),
        ):
            if session_id not in in_workspaces:
                summaries.setdefault(session_id, RowSummary())
    order = sorted(summaries, key=lambda session_id: (-summaries[session_id].max_rowid, session_id))
    if order:
        user_data.row_loader(file.path).set_order(
            [(session_id, summaries[session_id].bubble_count) for session_id in order]
        )
    seen_sessions.update(order)
    modified_at = _modified_at(file)
    for session_id in order:
        entry = user_data.list_entry(session_id)
        header = entry.header if entry else ComposerHeader()
        summary = summaries[session_id]
        # Never increases: units are read by time, and reading rows in their order is faster.
        updated_ms = as_int(header.last_updated_at)
        modified_at = min(modified_at, updated_ms * 1_000_000) if updated_ms else modified_at
        title = as_text(header.name).strip() or None
        # A title may be added later, in another database.
        other_title = user_data.side_databases.title(session_id) if title is None else None
        # Before Cursor 3.0, only the lists of workspaces name the workspace of a session.
        is_in_global_list = session_id in user_data.global_list().entries
        storage_ids = () if is_in_global_list else user_data.session_storage_ids(session_id)
        yield Unit(
            source=SOURCE,
            root=str(user_data.root),
            path=str(file.path),
            key=session_id,
            fingerprint=_fingerprint(
                summary.token, entry.token if entry else "", *(other_title or ()), *storage_ids
            ),
            size=summary.bubble_count + bool(summary.composer_rowid),
            kind="agent" if is_subagent_entry(session_id, header, entry) else "session",
            session_id=session_id,
            title=title,
            modified_at=modified_at,
        )


def _modified_at(file: DatabaseFile) -> int:
    """Return when a database was last written, in nanoseconds; 0 if it does not exist."""
    try:
        return file.path.stat().st_mtime_ns
    except OSError:
        return 0


def _fingerprint(*parts: str) -> str:
    return blake2b("|".join(parts).encode(), digest_size=12).hexdigest()


def _sessions_without_rows(user_data: UserData, known: AbstractSet[str]) -> set[str]:
    """Return sessions that are only in lists of workspaces, if there is no global list."""
    if user_data.global_list().source != "none":
        return set()
    found: set[str] = set()
    for file in user_data.databases():
        if file.storage_id:
            lists = user_data.database_lists(file)
            found |= lists.entries.keys() - lists.inline_tokens.keys()
    return found - known


def _conversation_units(
    user_data: UserData,
    file: DatabaseFile,
    seen_sessions: set[str],
    seen_tabs: set[str],
    storages_with_sessions: set[str],
) -> Iterator[Unit]:
    """Return conversations in the lists of a database, or its prompt log if the workspace has no session."""
    lists = user_data.database_lists(file)
    root, path = str(user_data.root), str(file.path)
    has_conversation = False
    for tab in lists.tabs:
        session_id = f"{file.storage_id}-{tab.id}" if tab.id in seen_tabs and file.storage_id else tab.id
        seen_tabs.add(tab.id)
        has_conversation = True
        yield Unit(SOURCE, root, path, f"tab:{tab.id}", tab.token, 1, "session", session_id, tab.title)
    for session_id, token in lists.inline_tokens.items():
        has_conversation = True
        if session_id in seen_sessions:
            continue
        seen_sessions.add(session_id)
        title = as_text(lists.entries[session_id].header.name).strip() or None
        yield Unit(SOURCE, root, path, f"composer:{session_id}", token, 1, "session", session_id, title)
    if (
        lists.has_prompt_log
        and not has_conversation
        and file.storage_id
        and file.storage_id not in storages_with_sessions
    ):
        yield Unit(
            SOURCE,
            root,
            path,
            "prompts",
            user_data.token(file.path),
            1,
            "prompts",
            prompt_log.log_session_id(file.storage_id),
        )


def _storages_with_sessions(user_data: UserData) -> set[str]:
    """Return the storage ids of workspaces with a listed session that has rows."""
    with_rows = user_data.row_summaries(user_data.global_path).keys()
    found = {
        entry.workspace_id
        for session_id, entry in user_data.global_list().entries.items()
        if session_id in with_rows
    }
    for file in user_data.databases():
        lists = user_data.database_lists(file)
        if file.storage_id and any(
            session_id in with_rows for session_id in (*lists.entries, *lists.open_ids)
        ):
            found.add(file.storage_id)
    return found


def _database_units(user_data: UserData) -> list[Unit]:
    """Return the units of the databases. Fingerprints are taken before a read, so no change is missed."""
    found = [
        (file.path, "" if file.path in user_data.faults else user_data.token(file.path), "index")
        for file in user_data.databases()
    ]
    found += [
        (path, user_data.side_databases.token(path), locations.TITLES_KIND)
        for path in locations.side_databases(user_data.root)
    ]
    found += [(path, "", UNREADABLE.name) for path in locations.unreadable_folders(user_data.root)]
    found += [(Path(path), "", LOG.name) for path in locations.logs_without_database(user_data.root)]
    return [
        Unit(SOURCE, str(user_data.root), str(path), fingerprint=token, kind=kind)
        for path, token, kind in found
    ]


def _sessions_with_units(user_data: UserData, file: DatabaseFile) -> frozenset[str]:
    """Return the sessions of a database that have their own unit, which counts their rows."""
    with_rows = set(user_data.row_summaries(file.path))
    if not file.storage_id:
        return frozenset(
            with_rows | user_data.global_list().entries.keys() | _sessions_without_rows(user_data, with_rows)
        )
    return (
        frozenset(with_rows - user_data.row_summaries(user_data.global_path).keys())
        if with_rows
        else frozenset()
    )


# Decoded records without secrets, for bug reports


def _session_records(user_data: UserData, path: Path, session_id: str) -> Iterator[tuple[str, Any]]:
    """Return the rows of a session with their key families."""
    rows = user_data.row_loader(path).load_session(session_id)
    yield from _decode_record("composerData", rows.composer_value())
    for _, value in rows.bubble_values(rows.bubble_rowids):
        yield from _decode_record("bubbleId", value)
    for family in RECORD_FAMILIES:
        if rows.related_counts.get(family):
            for value in RelatedRows(user_data.row_loader(path), session_id).values(family):
                yield from _decode_record(family, value)


def _list_records(user_data: UserData, path: Path) -> Iterator[tuple[str, Any]]:
    """Return the lists of a database with their keys. Unknown keys of ``ItemTable`` are not read."""
    for kind, value in user_data.database(path).read(_read_lists):
        yield from _decode_record(kind, value)


def _read_lists(connection: Connection) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    if has_table(connection, "ItemTable"):
        for key in sorted(session_lists.WORKSPACE_KEYS | session_lists.GLOBAL_KEYS):
            found.append((key, session_lists.read_item(connection, key)))
    if has_table(connection, "composerHeaders"):
        cursor = connection.execute("select * from composerHeaders")
        names = [column[0] for column in cursor.description]
        if "value" in names:
            position = names.index("value")
            found += [("composerHeaders", as_bytes(row[position])) for row in cursor]
    return found


def _decode_record(kind: str, value: object) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, bytes):
        return
    try:
        document = decode(Raw(value), object)
    except UndecodableError:
        return
    yield kind, _without_secrets(document) if b"EncryptionKey" in value else document


def _without_secrets(document: Any) -> Any:
    """Remove secret fields at any depth: lists of the earliest builds contain whole records."""
    if isinstance(document, dict):
        return {key: _without_secrets(item) for key, item in document.items() if key not in _SECRET_FIELDS}
    if isinstance(document, list):
        return [_without_secrets(item) for item in document]
    return document
