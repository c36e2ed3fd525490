"""What one account's messages and edits come to, from one look at each of them.

Most messages of a quarter of an hour are alike in all that is counted: they are
put together first, and only each kind of them is thought about.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import Struct, field

from backscroll.archive.derive.rollups import PAUSE, QUARTER, UNDATED, Done, Quarters
from backscroll.archive.storage.strings import FIXED

__all__ = ["Counts", "Decision", "count"]

_SYSTEM, _USER, _TOOL, _QUEUED = (FIXED[word] for word in ("system", "user", "tool", "queued"))
_COMPLETED, _FAILED, _ACCEPTED = (FIXED[word] for word in ("completed", "failed", "accepted"))

# Why a message is not counted, or not everywhere; a row has the sum of those that hold.
_COPIED = 1  # another session held it first
_REPEATED = 2  # in a subagent's file, and counted in the session
_EARLIER = 4  # in an account of the same session before this one, and counted there

# A forked subagent's file begins with the response that started it, under a new id.
_IS_REPEATED = (
    "(exists (select 1 from message o join fragment p on p.id = o.fragment_id"
    " where o.call_hash = m.call_hash and not p.is_subagent)"
    " or m.record_hash in"
    " (select r.record_hash from response r where r.fragment_id = m.fragment_id and r.is_copy = 1))"
)
_QUARTER = f"coalesce(m.at / {QUARTER}, {UNDATED})"
_MESSAGES = (
    f"select at, {_QUARTER}, role_string_id, kind_string_id, tool_string_id, model_string_id,"  # noqa: S608
    " agent_string_id, is_active, status_string_id, {why} from message m where fragment_id = ?"
    " order by position"
)
_EDITS = (
    f"select e.path, e.lines_added, e.lines_removed, m.position, m.at, {_QUARTER}, m.tool_string_id,"  # noqa: S608
    " m.model_string_id, m.status_string_id, m.decision_string_id, {why}"
    " from edit e cross join message m on m.fragment_id = e.fragment_id and m.position = e.position"
    " where e.fragment_id = ? and m.is_active order by e.position"
)
_AT, _TOOL_OF, _IS_ACTIVE = 0, 4, 7  # places in a row of messages; why it may not count is the last
_KIND = itemgetter(slice(1, None))  # what messages are alike in
_MANY = 4096  # rows in memory at a time


class Decision(NamedTuple):
    """An edit that somebody, or a standing permission, decided on."""

    tool: int | None
    path: str
    decision: int
    position: int
    at: int | None


class Counts(Struct):
    """What the figures of a session need of an account; words are numbers, times milliseconds."""

    spoken: Counter[int | None] = field(default_factory=Counter)  # shown, no system's, by inlined subagent
    interactions: int = 0
    first_at: int | None = None
    last_at: int | None = None
    tools: list[tuple[int, int | None]] = field(default_factory=list)  # of shown calls, with their times
    models: Counter[int] = field(default_factory=Counter)
    agents: set[int] = field(default_factory=set)  # inlined, also in what an account before tells
    changes: int = 0
    decisions: list[Decision] = field(default_factory=list)
    tokens: int | None = None
    is_at_least: bool = False


def count(
    db: sqlite3.Connection, quarters: Quarters, account: int, before: Sequence[int], *, is_agent: bool
) -> Counts:
    """Count an account, and what was done in each quarter of an hour; ``before`` are those that go first.

    Two files of a session may both hold a message, and it counts once.
    """
    why = f"(m.copied_from_string_id is not null) * {_COPIED}"
    if is_agent:
        why += f" + {_IS_REPEATED} * {_REPEATED}"
    if before:
        accounts = ", ".join(map(str, before))
        repeated = (
            "select 1 from message e where e.record_hash = m.record_hash"  # noqa: S608
            f" and e.fragment_id in ({accounts})"
        )
        why += f" + exists ({repeated}) * {_EARLIER}"
    found = Counts()
    done = Done()
    kinds = _read(db.execute(_MESSAGES.format(why=why), [account]), found, done)
    _count_kinds(kinds, found, done)
    _count_edits(db.execute(_EDITS.format(why=why), [account]), found, done)
    quarters.write(account, done)
    found.tokens, found.is_at_least = quarters.spend(account)
    return found


def _read(cursor: sqlite3.Cursor, found: Counts, done: Done) -> Counter[tuple[Any, ...]]:
    """Take from each message what depends on its place, and count how many there are of each kind."""
    kinds: Counter[tuple[Any, ...]] = Counter()
    active = done.active
    latest = -PAUSE
    while rows := cursor.fetchmany(_MANY):
        kinds.update(map(_KIND, rows))
        found.tools += [
            (row[_TOOL_OF], row[_AT])
            for row in rows
            if row[_TOOL_OF] is not None and row[_IS_ACTIVE] and row[-1] < _EARLIER
        ]
        times = [row[_AT] for row in rows if row[_AT] is not None and row[-1] < _EARLIER]
        if times:
            first, last = min(times), max(times)
            found.first_at = first if found.first_at is None else min(first, found.first_at)
            found.last_at = last if found.last_at is None else max(last, found.last_at)
        if any(map(itemgetter(-1), rows)):
            times = [row[_AT] for row in rows if row[_AT] is not None and not row[-1]]
        # Times are not always in order: what lies before the latest one so far was counted already.
        for at in times:
            if at > latest:
                if at - latest < PAUSE:
                    active[at // QUARTER] = active.get(at // QUARTER, 0) + at - latest
                latest = at
    return kinds


def _count_kinds(kinds: Counter[tuple[Any, ...]], found: Counts, done: Done) -> None:
    """Count messages that are alike together; only those that count everywhere are done in a quarter."""
    for (quarter, role, kind, tool, model, agent, is_active, status, why), many in kinds.items():
        if agent is not None:
            found.agents.add(agent)
        if why >= _EARLIER:
            continue
        if model is not None:
            found.models[model] += many
        sums = done.sums[quarter] if not why else None
        if not is_active or role == _SYSTEM:
            continue
        found.spoken[agent] += many
        is_prompt = role == _USER and agent is None and (kind is None or kind == _QUEUED)
        if is_prompt and not why & _COPIED:
            found.interactions += many
        if sums is None:
            continue
        is_call = role == _TOOL
        failed = many if is_call and status == _FAILED else 0
        sums.messages += many if agent is None else 0
        sums.agent_messages += many if agent is not None else 0
        sums.prompts += many if is_prompt else 0
        sums.calls += many if is_call else 0
        sums.failures += failed
        if is_call or model is not None:
            work = done.work[quarter, tool or 0 if is_call else 0, model or 0]
            work.messages += many
            work.calls += many if is_call else 0
            work.failures += failed


def _count_edits(rows: Iterable[tuple[Any, ...]], found: Counts, done: Done) -> None:
    for path, added, removed, position, at, quarter, tool, model, status, decision, why in rows:
        if why >= _EARLIER:
            continue
        is_completed = status == _COMPLETED
        if is_completed and not why & _COPIED:
            found.changes += added + removed
        if decision is not None:
            found.decisions.append(Decision(tool, path, decision, position, at))
        if not why:
            work = done.work[quarter, tool or 0, model or 0]
            work.added += added if is_completed else 0
            work.removed += removed if is_completed else 0
            work.decided += decision is not None
            work.accepted += decision == _ACCEPTED
