"""The rows of a session, and its subagents."""

from sqlite3 import Connection

from backscroll.errors import ChangeConflictError
from backscroll.sources.cursor.database import keys
from backscroll.sources.cursor.database.decode import UndecodableError, as_list, as_map, as_text, decode
from backscroll.sources.cursor.database.record_types import Composer
from backscroll.sources.cursor.user_data import UserData

__all__ = ["check_tab", "composer_key", "descendants", "session_keys"]

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


def check_tab(user_data: UserData, session_id: str) -> None:
    """Raise `ChangeConflictError` if several chat panels have a conversation with this id."""
    databases = [
        file.path
        for file in user_data.databases()
        if any(tab.id == session_id for tab in user_data.database_lists(file).tabs)
    ]
    if len(databases) > 1:
        raise ChangeConflictError(
            f"Several workspaces have a conversation with the id {session_id}. It cannot be moved or copied.",
            databases[0],
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
