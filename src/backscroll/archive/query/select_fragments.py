"""Which accounts count: those that sessions are taken from, and those of the subagents they started."""

import sqlite3
from typing import NamedTuple

from backscroll.archive.query.filters import condition
from backscroll.archive.session_key import SessionKey
from backscroll.model import STORES, Filter

__all__ = ["CountedSession", "count_accounts"]

# A path on another machine is told with the host; few sessions have one, so that metadata is rarely parsed.
_PLACE = (
    "iif(instr(metadata, 'workspace_authority'),"
    " json_extract(metadata, '$.workspace_authority') || ':' || workspace_path, workspace_path)"
)
_ACCOUNTS = (
    "select external_id, platform, coalesce(parent_external_id, inferred_parent_external_id),"
    " is_subagent, id,"
    " store, message_count from fragment where length(closing)"
)


class CountedSession(NamedTuple):
    """A session, as far as figures tell sessions apart."""

    number: int
    ref: str
    source: str
    workspace_path: str | None  # on another machine, with the host before it
    title: str | None
    preview: str | None
    has_tokens: bool  # somebody counted them


class _Told(NamedTuple):
    id: str
    platform: str
    parent: str | None
    is_agent: bool
    number: int
    store: str
    messages: int

    @property
    def rank(self) -> tuple[bool, int]:
        """As `accounts` ranks them, as far as it tells one store from another."""
        return not self.messages, STORES.index(self.store)


def count_accounts(
    db: sqlite3.Connection, wanted: Filter, only: SessionKey | None = None
) -> dict[int, CountedSession]:
    """The sessions that pass, or that one, by number; ``temp.counted`` has the accounts they are made of.

    These are the same that a session's own figures are made of: see `accounts.told_by` and `rows`.
    """
    passing, values = condition(db, wanted, with_subagents_times=True)
    if only is not None:
        passing += " and external_id = :only and platform = :platform"
        values |= {"only": only.id, "platform": only.platform}
    rows = db.execute(
        f"select number, external_id, platform, source, {_PLACE}, title, first_message_preview,"  # noqa: S608
        f" total_tokens is not null from conversations where {passing}",
        values,
    )
    sessions: dict[int, CountedSession] = {}
    numbers: dict[tuple[str, str], int] = {}
    for number, id_, platform, *facts in rows:
        sessions[number] = CountedSession(number, f"{facts[0]}:{id_}", *facts)
        numbers[id_, platform] = number
    groups: dict[tuple[int, str | None], list[_Told]] = {}
    for told in map(_Told._make, db.execute(_ACCOUNTS)):
        helper = told.id if told.is_agent and told.parent is not None else None
        session = numbers.get((told.parent if helper and told.parent else told.id, told.platform))
        if session is not None:
            groups.setdefault((session, helper), []).append(told)
    found: list[tuple[int, int, bool, int | None]] = []
    for place, ((session, helper), some) in enumerate(groups.items()):
        best = min(some, key=lambda one: one.rank)
        alike = [one.number for one in some if one.store == best.store]
        team = place if len(alike) > 1 else None
        found += [(number, session, helper is None, team) for number in alike]
    db.execute(
        "create temp table if not exists counted"
        " (fragment_id integer primary key, session integer, is_own integer, team integer)"
    )
    db.execute("delete from counted")
    db.executemany("insert into counted values (?, ?, ?, ?)", sorted(found))
    return sessions
