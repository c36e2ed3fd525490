"""Cache of sessions, their positions and copies. Invalidated when the archive changes."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable
from itertools import count

import msgspec

from backscroll.archive.query.workspaces import KnownWorkspace, known_workspaces
from backscroll.lru_cache import LRUCache
from backscroll.model import SessionSummary

__all__ = ["CachedSession", "DataVersion", "SessionCache"]

MAX_CACHED_SESSIONS = 2000

CachedSession = tuple[SessionSummary, int | None]  # a session, and its fragment if it has only one


class DataVersion:
    """Detects changes of the archive, by this connection or another."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version: tuple[int, int] | None = None

    def has_changed(self) -> bool:
        """Return whether the archive has changed since the last call. True on the first call."""
        # data_version changes with commits of other connections, total_changes with our own.
        (data_version,) = self._db.execute("pragma data_version").fetchone()
        version = data_version, self._db.total_changes
        if version == self._version:
            return False
        self._version = version
        return True


class SessionCache:
    """Cached sessions, list positions, copies and workspaces of one connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version = DataVersion(db)
        self._sessions: LRUCache[int, CachedSession] = LRUCache(MAX_CACHED_SESSIONS)
        self._list_indexes: dict[int, int] | None = None
        self._first_sessions: dict[int, set[int]] | None = None
        self._workspaces: list[KnownWorkspace] | None = None

    def sessions(
        self, ids: set[int], read: Callable[[set[int]], dict[int, CachedSession]]
    ) -> dict[int, CachedSession]:
        """Return the sessions with these ids. Call `read` for those that are not in the cache."""
        self._invalidate_if_changed()
        found = {id_: session for id_ in ids if (session := self._sessions.get(id_)) is not None}
        missing = ids - found.keys()
        if missing:
            for id_, session in read(missing).items():
                found[id_] = session
                self._sessions.put(id_, session)
        return found

    def list_indexes(self) -> dict[int, int]:
        """Return the 1-based positions of all sessions in the complete list, by id."""
        self._invalidate_if_changed()
        if self._list_indexes is None:
            (ids,) = self._db.execute(
                "select json_group_array(number) from (select number from conversations"
                " where visibility in ('listed', 'archived') order by updated_at desc, number desc)"
            ).fetchone()
            self._list_indexes = dict(zip(msgspec.json.decode(ids, type=list[int]), count(1), strict=False))
        return self._list_indexes

    def first_sessions(self) -> dict[int, set[int]]:
        """Return the sessions with copied messages, each with the sessions that had them first."""
        self._invalidate_if_changed()
        if self._first_sessions is None:
            self._first_sessions = _find_first_sessions(self._db)
        return self._first_sessions

    def workspaces(self) -> list[KnownWorkspace]:
        """Return all workspaces of the archive."""
        self._invalidate_if_changed()
        if self._workspaces is None:
            self._workspaces = known_workspaces(self._db)
        return self._workspaces

    def _invalidate_if_changed(self) -> None:
        if self._version.has_changed():
            self._sessions.clear()
            self._list_indexes = None
            self._first_sessions = None
            self._workspaces = None


def _find_first_sessions(db: sqlite3.Connection) -> dict[int, set[int]]:
    """Return the ids of all sessions with copied messages, each with the sessions that had them first.

    The index contains a copied message only in its first session.
    """
    rows = db.execute(
        "select coalesce(c.number, a.id), o.number, s.text, f.platform from (select distinct fragment_id,"
        " copied_from_string_id from message where copied_from_string_id is not null) m"
        " join fragment f on f.id = m.fragment_id join string s on s.id = m.copied_from_string_id"
        " left join conversations c on not f.is_subagent and c.external_id = f.external_id"
        " and c.platform = f.platform"
        " left join subagent a on f.is_subagent and a.agent_id = f.external_id and a.platform = f.platform"
        " and a.parent_external_id = coalesce(f.parent_external_id, f.inferred_parent_external_id)"
        " left join conversations o on o.external_id = s.text and o.platform = f.platform"
    )
    found: defaultdict[int, set[int]] = defaultdict(set)
    from_subagents: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for session_id, first_id, first, platform in rows:
        if session_id is None:
            continue
        if first_id is not None:
            found[session_id].add(first_id)
        else:
            from_subagents[first, platform].add(session_id)
    if from_subagents:  # one pass, because no index begins with the id of a subagent
        for first_id, *key in db.execute("select id, agent_id, platform from subagent"):
            for session_id in from_subagents.get((key[0], key[1]), ()):
                found[session_id].add(first_id)
    return dict(found)
