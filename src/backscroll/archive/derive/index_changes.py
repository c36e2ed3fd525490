"""What the index lacks: sessions and subagents, each from a position on.

A session that only grew is indexed from where it grew. Whatever bears on all of its
messages, or on earlier ones, has it indexed from the start.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from backscroll.archive.session_key import SessionKey
from backscroll.model import STORES

__all__ = ["found_by", "listen", "note_changes"]

_Group = str | None  # the accounts of a subagent, by its id, or of the session itself

_NOTE = (
    "insert into index_queue (session_number, first_position) values (?, ?)"
    " on conflict (session_number) do update"
    " set first_position = min(first_position, excluded.first_position), revision = revision + 1"
)
_CHANGED = (
    "select f.external_id, f.store, f.message_count, c.compared_count, r.position"
    " from fragment f left join changed c on c.fragment_id = f.id"
    " left join recopied r on r.fragment_id = f.id where f.platform = :platform and "
)


class _Found(NamedTuple):
    """What all messages of a session or subagent are found by, beside what each says itself."""

    agent_id: str | None
    source: str
    title: str | None
    workspace_hash: str | None
    workspace_name: str | None
    git_branch: str | None


class _Change(NamedTuple):
    """An account, and from which positions on something in it is not as it was."""

    store: str
    messages: int
    compared: int | None
    recopied: int | None

    @property
    def rank(self) -> tuple[bool, int]:
        """As `accounts` ranks them, as far as it tells one store from another."""
        return not self.messages, STORES.index(self.store)


FoundBy = dict[int, _Found]  # by number


def listen(db: sqlite3.Connection) -> None:
    """From now on, notice where it changes whose a message is."""
    db.execute("create temp table if not exists recopied (fragment_id integer primary key, position integer)")
    db.execute("delete from recopied")
    db.execute(
        "create temp trigger if not exists recopying after update of copied_from_string_id on main.message"
        " when new.copied_from_string_id is not old.copied_from_string_id begin"
        " insert into recopied values (new.fragment_id, new.position)"
        " on conflict (fragment_id) do update set position = min(position, excluded.position); end"
    )


def found_by(db: sqlite3.Connection, session: SessionKey) -> FoundBy:
    """What a session and its subagents are found by as a whole."""
    key = [session.id, session.platform]
    own = db.execute(
        "select number, null, source, title, workspace_hash, workspace_name, git_branch"
        " from conversations where external_id = ? and platform = ?",
        key,
    )
    found = {number: _Found(*rest) for number, *rest in own}
    workspace = next((one.workspace_hash for one in found.values()), None)
    agents = db.execute(
        "select id, agent_id, source, title from subagent where parent_external_id = ? and platform = ?", key
    )
    for number, agent_id, source, title in agents:
        found[number] = _Found(agent_id, source, title, workspace, None, None)
    return found


def note_changes(db: sqlite3.Connection, session: SessionKey, before: FoundBy) -> None:
    """Note what the index lacks of a session that was derived anew; often nothing has changed for it."""
    after = found_by(db, session)
    lacking = {number: 0 for number in {*before, *after} if before.get(number) != after.get(number)}
    same = after.keys() - lacking.keys()
    if same:
        firsts = _firsts(db, session)
        for number in same:
            agent_id = after[number].agent_id
            # A subagent that has no account of its own is told by its session's.
            first = firsts.get(agent_id, firsts[None] and 0)
            if first is not None:
                lacking[number] = first
    db.executemany(_NOTE, lacking.items())


def _firsts(db: sqlite3.Connection, session: SessionKey) -> dict[_Group, int | None]:
    """The first position of each group of accounts that is not as it was; None when all are."""
    key = {"id": session.id, "platform": session.platform}
    groups: dict[_Group, list[_Change]] = {None: []}
    own = (
        "f.external_id = :id and"
        " (not f.is_subagent or coalesce(f.parent_external_id, f.inferred_parent_external_id) is null)"
    )
    for _, *change in db.execute(_CHANGED + own, key):
        groups[None].append(_Change(*change))
    agents = "coalesce(f.parent_external_id, f.inferred_parent_external_id) = :id and f.is_subagent = 1"
    for id_, *change in db.execute(_CHANGED + agents, key):
        groups.setdefault(id_, []).append(_Change(*change))
    return {group: _first(changes) for group, changes in groups.items()}


def _first(changes: list[_Change]) -> int | None:
    """Where the messages begin that are new; those of a store that they are not taken from do not matter."""
    best = min((one.rank for one in changes), default=None)
    firsts = [_least((one.compared, one.recopied)) for one in changes if one.rank[1] == (best and best[1])]
    # Positions are those of an account only where there is no other to be put together with it.
    return _least(firsts) if len(firsts) == 1 else _least([one and 0 for one in firsts])


def _least(positions: Iterable[int | None]) -> int | None:
    return min((one for one in positions if one is not None), default=None)
