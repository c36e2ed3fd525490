"""The fragments that statistics count: the content of the sessions, and of the subagents they started."""

import sqlite3
from typing import NamedTuple

from backscroll.archive.query.filters import where_clause
from backscroll.archive.session_key import SessionKey
from backscroll.model import STORES, Filter

__all__ = ["SelectedSession", "select_fragments"]

# The path on another machine starts with its host. Few sessions have one, so metadata is rarely parsed.
_WORKSPACE = (
    "iif(instr(metadata, 'workspace_authority'),"
    " json_extract(metadata, '$.workspace_authority') || ':' || workspace_path, workspace_path)"
)
_PARENT = "coalesce(parent_external_id, inferred_parent_external_id)"
# The fragments of a session as in the view `fragment_session`, found by an index. The unary plus removes the
# type affinity of the column, with which SQLite would not use the index of the expression.
_SESSION_FRAGMENTS = (
    "select id from fragment where external_id = conversations.external_id"  # noqa: S608 - constants
    f" and platform = conversations.platform and (not is_subagent or {_PARENT} is null)"
    f" union all select id from fragment where {_PARENT} = +conversations.external_id"
    " and platform = conversations.platform and is_subagent = 1"
)
# A copied session has no tokens of its own: they are those of the original. Few sessions have no prompt.
# SQLite 3.40 evaluates both operands of "and" and "or" here, but only one branch of a "case".
_HAS_TOKENS = (
    "case when total_tokens is not null then 1"  # noqa: S608 - constants
    " when message_count = 0 or interaction_count > 0 then 0"
    " else not exists (select 1 from activity_rollup"
    f" where message_count > 0 and fragment_id in ({_SESSION_FRAGMENTS})) end"
)
_FRAGMENTS = (
    f"select external_id, platform, {_PARENT}, is_subagent, id, store, message_count"  # noqa: S608 - constants
    " from fragment where length(closing)"
)


class SelectedSession(NamedTuple):
    """A session, with the values that statistics group by."""

    id: int
    ref: str
    source: str
    workspace_path: str | None  # with the host for another machine
    title: str | None
    preview: str | None
    has_tokens: bool  # the tool stored token counts, or all messages are copies
    message_count: int  # with messages that another session contained first


class _Fragment(NamedTuple):
    external_id: str
    platform: str
    parent_external_id: str | None
    is_subagent: bool
    id: int
    store: str
    message_count: int

    @property
    def rank(self) -> tuple[bool, int]:
        """Sort key for stores: the same order as in `derive.fragments`."""
        return not self.message_count, STORES.index(self.store)


def select_fragments(
    db: sqlite3.Connection, filter_: Filter, only: SessionKey | None = None
) -> dict[int, SelectedSession]:
    """Return the matching sessions, or one of them, by id. Write their fragments to ``temp.selected``.

    These are the same fragments that the totals of a session are computed from: see `derive.fragments`
    and `derive.session_rows`. Fragments with the same ``group_id`` can repeat each other's messages.
    """
    condition, parameters = where_clause(db, filter_, with_subagent_times=True)
    if only is not None:
        condition += " and external_id = :only and platform = :platform"
        parameters |= {"only": only.id, "platform": only.platform}
    rows = db.execute(
        f"select number, external_id, platform, source, {_WORKSPACE}, title, first_message_preview,"  # noqa: S608
        f" {_HAS_TOKENS}, message_count from conversations where {condition}",
        parameters,
    )
    sessions: dict[int, SelectedSession] = {}
    ids: dict[tuple[str, str], int] = {}
    for id_, external_id, platform, source, *values in rows:
        sessions[id_] = SelectedSession(id_, f"{source}:{external_id}", source, *values)
        ids[external_id, platform] = id_
    groups: dict[tuple[int, str | None], list[_Fragment]] = {}
    for fragment in map(_Fragment._make, db.execute(_FRAGMENTS)):
        agent_id, session_external_id = None, fragment.external_id
        if fragment.is_subagent and fragment.parent_external_id is not None:
            agent_id, session_external_id = fragment.external_id, fragment.parent_external_id
        session_id = ids.get((session_external_id, fragment.platform))
        if session_id is not None:
            groups.setdefault((session_id, agent_id), []).append(fragment)
    selected: list[tuple[int, int, bool, int | None]] = []
    for index, ((session_id, agent_id), fragments) in enumerate(groups.items()):
        best = min(fragments, key=lambda fragment: fragment.rank)
        # Token counts from hooks have rollups only if no other fragment has token counts.
        counted_stores = best.store, "usage"
        same_store = [fragment.id for fragment in fragments if fragment.store in counted_stores]
        group_id = index if len(same_store) > 1 else None
        selected += [(id_, session_id, agent_id is None, group_id) for id_ in same_store]
    db.execute(
        "create temp table if not exists selected"
        " (fragment_id integer primary key, session_id integer, is_own integer, group_id integer)"
    )
    db.execute("delete from selected")
    db.executemany("insert into selected values (?, ?, ?, ?)", sorted(selected))
    return sessions
