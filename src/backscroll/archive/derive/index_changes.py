"""Queue sessions and subagents for the index, each from the first position that changed.

A session that only grew is indexed from where it grew. A change that concerns earlier messages, or a field
that all of its documents contain, has it indexed from the start.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from backscroll.archive.session_key import SessionKey
from backscroll.model.store import store_rank

_AgentId = str | None  # of a subagent; None for the session itself

_QUEUE = (
    "insert into index_queue (session_number, first_position) values (?, ?)"
    " on conflict (session_number) do update"
    " set first_position = min(first_position, excluded.first_position), revision = revision + 1"
)
_CHANGES = (
    "select f.external_id, f.store, f.message_count, c.compared_count, r.position"
    " from fragment f left join changed c on c.fragment_id = f.id"
    " left join recopied r on r.fragment_id = f.id where f.platform = :platform and "
)
_PARENT = "coalesce(f.parent_external_id, f.inferred_parent_external_id)"


class _Fields(NamedTuple):
    """Fields that every document of a session or subagent contains."""

    agent_id: str | None
    source: str
    title: str | None
    workspace_hash: str | None
    workspace_name: str | None
    git_branch: str | None


class _Change(NamedTuple):
    """A fragment and the first positions that are new or have another owner."""

    store: str
    message_count: int
    first_new: int | None
    first_recopied: int | None

    @property
    def rank(self) -> tuple[bool, int]:
        """Rank of the store, as in `fragments`."""
        return not self.message_count, store_rank(self.store)


IndexFields = dict[int, _Fields]  # by number of the session or id of the subagent


def track_copy_changes(db: sqlite3.Connection) -> None:
    """Record from now on at which positions the owner of a message changes."""
    db.execute("create temp table if not exists recopied (fragment_id integer primary key, position integer)")
    db.execute("delete from recopied")
    db.execute(
        "create temp trigger if not exists recopying after update of copied_from_string_id on main.message"
        " when new.copied_from_string_id is not old.copied_from_string_id begin"
        " insert into recopied values (new.fragment_id, new.position)"
        " on conflict (fragment_id) do update set position = min(position, excluded.position); end"
    )


def index_fields(db: sqlite3.Connection, session: SessionKey) -> IndexFields:
    """Return the fields that all documents of a session and of its subagents contain."""
    key = [session.id, session.platform]
    rows = db.execute(
        "select number, null, source, title, workspace_hash, workspace_name, git_branch"
        " from conversations where external_id = ? and platform = ?",
        key,
    )
    found = {session_id: _Fields(*values) for session_id, *values in rows}
    workspace = next((fields.workspace_hash for fields in found.values()), None)
    subagents = db.execute(
        "select id, agent_id, source, title from subagent where parent_external_id = ? and platform = ?", key
    )
    for id_, agent_id, source, title in subagents:
        found[id_] = _Fields(agent_id, source, title, workspace, None, None)
    return found


def queue_changes(db: sqlite3.Connection, session: SessionKey, before: IndexFields) -> None:
    """Queue a derived session and its subagents as far as they changed. Often nothing did."""
    after = index_fields(db, session)
    queued = {id_: 0 for id_ in {*before, *after} if before.get(id_) != after.get(id_)}
    unchanged = after.keys() - queued.keys()
    if unchanged:
        firsts = _first_changes(db, session)
        for id_ in unchanged:
            # A subagent without a fragment of its own is inlined in the session's.
            first = firsts.get(after[id_].agent_id, firsts[None] and 0)
            if first is not None:
                queued[id_] = first
    db.executemany(_QUEUE, queued.items())


def _first_changes(db: sqlite3.Connection, session: SessionKey) -> dict[_AgentId, int | None]:
    """Return the first changed position of a session and of each subagent; None if nothing changed."""
    key = {"id": session.id, "platform": session.platform}
    groups: dict[_AgentId, list[_Change]] = {None: []}
    own = f"f.external_id = :id and (not f.is_subagent or {_PARENT} is null)"
    for _, *change in db.execute(_CHANGES + own, key):
        groups[None].append(_Change(*change))
    subagents = f"{_PARENT} = :id and f.is_subagent = 1"
    for agent_id, *change in db.execute(_CHANGES + subagents, key):
        groups.setdefault(agent_id, []).append(_Change(*change))
    return {agent_id: _first_change(changes) for agent_id, changes in groups.items()}


def _first_change(changes: list[_Change]) -> int | None:
    """Return the first changed position. Fragments that do not provide content are ignored."""
    best = min((change.rank for change in changes), default=None)
    firsts = [
        _min_known((change.first_new, change.first_recopied))
        for change in changes
        if change.rank[1] == (best and best[1])
    ]
    # Merged fragments have other positions than each fragment alone.
    return _min_known(firsts) if len(firsts) == 1 else _min_known([first and 0 for first in firsts])


def _min_known(positions: Iterable[int | None]) -> int | None:
    return min((position for position in positions if position is not None), default=None)
