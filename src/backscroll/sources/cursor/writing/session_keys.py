"""The rows of a session, and its subagents."""

from pathlib import Path
from sqlite3 import Connection

from backscroll.errors import ChangeConflictError, SessionNotFoundError, TransferError
from backscroll.sources.cursor.database import keys
from backscroll.sources.cursor.database.decode import UndecodableError, as_list, as_map, as_text, decode
from backscroll.sources.cursor.database.record_types import Composer
from backscroll.sources.cursor.user_data import UserData

__all__ = ["check_listed", "check_tab", "composer_key", "descendants", "session_keys"]

# Families of keys with the session's id after the first part. All are copied with a session.
_FAMILIES = (
    "bubbleId",
    "checkpointId",
    "codeBlockDiff",
    "codeBlockPartialInlineDiffFates",
    "messageRequestContext",
    "ofsContent",
    "agentKv:bubbleCheckpoint",
)
_MAX_DEPTH = 8


def composer_key(session_id: str) -> str:
    return f"composerData:{session_id}"


def session_keys(user_data: UserData, session_id: str) -> list[str]:
    """Return the keys of all rows of a session in the global database, its record last."""
    return user_data.database(user_data.global_path).read(lambda db: _session_keys(db, session_id))


def _session_keys(db: Connection, session_id: str) -> list[str]:
    if not keys.has_table(db, "cursorDiskKV"):
        return []
    found: list[str] = []
    for family in _FAMILIES:
        prefix = f"{family}:{session_id}:"
        rows = keys.rows_with_prefix(db, prefix.encode("utf-8", "replace"))
        found += [prefix + name.decode() for name, _ in rows]
    singles = (f"agentKv:checkpoint:{session_id}", composer_key(session_id))
    return found + [key for key in singles if keys.rowid_of(db, key)]


def check_listed(user_data: UserData, session_id: str) -> None:
    """Raise `TransferError` if Cursor does not show a session: it has no record, or is in no list.

    Raises `SessionNotFoundError` if the store does not contain it.
    """
    lists = [user_data.database_lists(file) for file in user_data.databases()]
    is_listed = session_id in user_data.global_list().entries or any(
        session_id in one.entries or any(tab.id == session_id for tab in one.tabs) for one in lists
    )
    keys = session_keys(user_data, session_id)
    has_record = composer_key(session_id) in keys
    # Since Cursor 3.0, the record of a new session names its workspace before it is in a list.
    if is_listed or (has_record and user_data.global_list().source != "none"):
        return
    if not keys:
        raise SessionNotFoundError(f"{user_data.root} does not contain the session {session_id}.", session_id)
    reason = "is in none of its lists" if has_record else "has messages, but no record"
    raise TransferError(
        f"Cursor does not show the session {session_id}: it {reason}. It cannot be moved or copied.",
        session_id,
        "unlisted",
        hint=f"Run 'backscroll handoff {session_id}' to continue its work in a new session.",
    )


def check_tab(user_data: UserData, session_id: str) -> None:
    """Raise `ChangeConflictError` if several chat panels have a conversation with this id."""
    databases: dict[str, list[Path]] = {}
    prefixed = {session_id}
    for file in user_data.databases():
        for tab in user_data.database_lists(file).tabs:
            databases.setdefault(tab.id, []).append(file.path)
            if session_id == f"{file.storage_id}-{tab.id}":  # the reader's name for one of several
                prefixed.add(tab.id)
    for tab_id in prefixed:
        if len(found := databases.get(tab_id, [])) > 1:
            raise ChangeConflictError(
                f"Several workspaces have a conversation with the id {tab_id}."
                " It cannot be moved or copied, because Cursor would confuse them.",
                found[0],
            )


def descendants(user_data: UserData, session_id: str) -> list[str]:
    """Return the subagents of a session, and theirs."""
    children: dict[str, set[str]] = {}
    for entry_id, entry in user_data.global_list().entries.items():
        parent = as_text(as_map(entry.header.subagent_info).get("parentComposerId"))
        if parent:
            children.setdefault(parent, set()).add(entry_id)
    found: dict[str, None] = {}
    level = [session_id]
    for _ in range(_MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in sorted(children.get(parent, set()) | _listed_children(user_data, parent))
            if child != session_id and child not in found
        ]
        found |= dict.fromkeys(level)
    return list(found)


def _listed_children(user_data: UserData, session_id: str) -> set[str]:
    value = user_data.row_loader(user_data.global_path).value_by_key(composer_key(session_id))
    if not isinstance(value, bytes):
        return set()
    try:
        composer = decode(value, Composer)
    except UndecodableError:
        return set()
    ids = [*as_list(composer.sub_composer_ids), *as_list(composer.subagent_composer_ids)]
    return {as_text(one) for one in ids} - {""}
