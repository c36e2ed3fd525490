"""Usage of sessions as their tool reports it.

A tool that reports totals also counts requests that no record contains. Its totals are cumulative. The totals
of a fork continue those of the original session, so only what was added after the fork belongs to the fork.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

# All states with the start times of the selected sessions, including those of sessions that are not selected.
_STATES = (
    "select coalesce(r.started_at, -r.fragment_id), f.platform || ':' || f.session_external_id, s.session_id,"
    " r.at, r.fragment_id, r.number, (select text from string where id = r.model_string_id), r.tokens,"
    " r.cost_usd"
    " from reported_usage r join fragment_session f on f.fragment_id = r.fragment_id"
    " left join {0} s on s.fragment_id = r.fragment_id and s.is_own"
    " where r.started_at in (select o.started_at from {0} t"
    "   cross join reported_usage o on o.fragment_id = t.fragment_id where t.is_own)"
    " or (r.started_at is null and s.session_id is not null)"
    " order by 1, 2, r.at, r.fragment_id, r.number"
)
_Models = dict[str | None, tuple[int, float]]  # tokens and dollars


class ReportedIncrement(Struct, frozen=True, gc=False):
    """Usage that a tool reports for a session since its last state."""

    session_id: int
    at: int | None  # milliseconds
    model: str | None
    tokens: int
    usd: float


class _State(Struct, frozen=True, gc=False):
    at: int | None
    models: _Models

    @property
    def usd(self) -> float:
        return sum(usd for _, usd in self.models.values())


_Series = tuple[int | None, list[_State]]  # session, None if it is not selected; its states


def reported_increments(db: sqlite3.Connection, table: str = "temp.selected") -> Iterator[ReportedIncrement]:
    """Return the increments of the sessions in a table. They add up to what a tool reports."""
    for _, rows in groupby(db.execute(_STATES.format(table)).fetchall(), key=lambda row: row[0]):
        group = [_series(list(same)) for _, same in groupby(rows, key=lambda row: row[1])]
        for series in group:
            session_id, states = series
            if session_id is not None:
                yield from _increments(session_id, states, _state_before(series, group))


def _series(rows: Sequence[tuple[Any, ...]]) -> _Series:
    """Return the states of a session. Several files of a session can contain the same states."""
    session_id = next((row[2] for row in rows if row[2] is not None), None)
    states: list[_State] = []
    for (at, *_), same in groupby(rows, key=lambda row: row[3:6]):
        state = _State(at, {model: (tokens, usd) for *_, model, tokens, usd in same})
        if not states or states[-1].models != state.models:
            states.append(state)
    return session_id, states


def _state_before(series: _Series, group: Sequence[_Series]) -> _Models:
    """Return the totals that a fork started with: the largest that other sessions had before it."""
    first = series[1][0]
    if first.at is None:
        return {}
    candidates = [
        state
        for other in group
        if other is not series
        for state in other[1]
        if state.at is not None and state.at < first.at and _is_included(state.models, first.models)
    ]
    return max(candidates, key=lambda state: state.usd).models if candidates else {}


def _is_included(part: Mapping[str | None, tuple[int, float]], whole: _Models) -> bool:
    """Return whether totals can include others: no model has fewer tokens."""
    return all(model in whole and tokens <= whole[model][0] for model, (tokens, _) in part.items())


def _increments(session_id: int, states: Sequence[_State], before: _Models) -> Iterator[ReportedIncrement]:
    for state in states:
        for model in {**before, **state.models}:
            tokens, usd = state.models.get(model, (0, 0.0))
            earlier_tokens, earlier_usd = before.get(model, (0, 0.0))
            yield ReportedIncrement(session_id, state.at, model, tokens - earlier_tokens, usd - earlier_usd)
        before = state.models
