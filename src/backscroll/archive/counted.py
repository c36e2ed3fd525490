"""Which accounts count: those that sessions are taken from, and those of the subagents they started."""

import sqlite3
from typing import NamedTuple

from backscroll.archive.filters import Filter, condition
from backscroll.model import STORES

__all__ = ["CountedSession", "count_accounts"]

_ACCOUNTS = (
    "select id, platform, coalesce(parent_id, found_parent), is_agent, number, store, messages, is_former"
    " from account where length(closing)"
)


class CountedSession(NamedTuple):
    """A session, as far as figures tell sessions apart."""

    number: int
    ref: str
    source: str
    workspace_path: str | None
    title: str | None
    preview: str | None


class _Told(NamedTuple):
    id: str
    platform: str
    parent: str | None
    is_agent: bool
    number: int
    store: str
    messages: int
    is_former: bool

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """As `accounts` ranks them, as far as it tells one store from another."""
        return self.is_former, not self.messages, STORES.index(self.store)


def count_accounts(db: sqlite3.Connection, wanted: Filter) -> dict[int, CountedSession]:
    """The sessions that pass, by number; the accounts that make them up are noted in ``temp.counted``.

    These are the same that a session's own figures are made of: see `accounts.told_by` and `rows`.
    """
    passing, values = condition(db, wanted)
    rows = db.execute(
        "select number, external_id, platform, source, workspace_path, title, first_message_preview"  # noqa: S608
        f" from conversations where {passing}",
        values,
    )
    sessions: dict[int, CountedSession] = {}
    numbers: dict[tuple[str, str], int] = {}
    for number, id_, platform, source, path, title, preview in rows:
        sessions[number] = CountedSession(number, f"{source}:{id_}", source, path, title, preview)
        numbers[id_, platform] = number
    groups: dict[tuple[int, str | None], list[_Told]] = {}
    for told in map(_Told._make, db.execute(_ACCOUNTS)):
        helper = told.id if told.is_agent and told.parent is not None else None
        session = numbers.get((told.parent if helper and told.parent else told.id, told.platform))
        if session is not None:
            groups.setdefault((session, helper), []).append(told)
    found: list[tuple[int, int, bool]] = []
    for (session, helper), some in groups.items():
        best = min(some, key=lambda one: one.rank)
        found += [(one.number, session, helper is None) for one in some if one.store == best.store]
    db.execute(
        "create temp table if not exists counted"
        " (account integer primary key, session integer, is_own integer)"
    )
    db.execute("delete from counted")
    db.executemany("insert into counted values (?, ?, ?)", sorted(found))
    return sessions
