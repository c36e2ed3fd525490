"""List the units below one root: sessions from keys, titles from lists. No message is decoded."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from pathlib import Path

from backscroll.model import Unit
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database.decode import as_int, as_text
from backscroll.sources.cursor.database.keys import RowSummary
from backscroll.sources.cursor.database.record_types import ComposerHeader
from backscroll.sources.cursor.prompt_log import log_session_id
from backscroll.sources.cursor.session.composer import SOURCE, is_subagent_entry
from backscroll.sources.cursor.user_data import DatabaseFile, UserData

__all__ = ["list_units", "sessions_with_units"]


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
    found += [(path, "", locations.UNREADABLE_KIND) for path in locations.unreadable_folders(user_data.root)]
    found += [
        (Path(path), "", locations.LOG_KIND) for path in locations.logs_without_database(user_data.root)
    ]
    return [
        Unit(SOURCE, str(user_data.root), str(path), fingerprint=token, kind=kind)
        for path, token, kind in found
    ]


def sessions_with_units(user_data: UserData, file: DatabaseFile) -> frozenset[str]:
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
            log_session_id(file.storage_id),
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


def _fingerprint(*parts: str) -> str:
    return blake2b("|".join(parts).encode(), digest_size=12).hexdigest()
