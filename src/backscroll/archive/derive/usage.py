"""Token usage: of model responses as recorded, and of sessions as a tool reports it.

A response is stored once per fragment, and counts where it was first produced. A tool that reports totals
also counts requests that no record contains. Its totals are cumulative. The totals of a fork continue those
of the original session, so only what was added after the fork belongs to the fork.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import json

from backscroll.archive.connection import text_list
from backscroll.archive.derive.fragments import undone_fragments
from backscroll.archive.storage.codec import hash64, hash_record, to_milliseconds
from backscroll.archive.storage.strings import StringTable
from backscroll.model.message import Message, TokenUsage
from backscroll.model.store import stores_with

if TYPE_CHECKING:
    from backscroll.model.stream import Opening, ReportedTotals, UsageReport

_NO_TIME = 1 << 61  # sorts after every time
NO_MESSAGE = 0  # record_hash of a response without messages
_USAGE_COLUMNS = (
    "input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens, cache_creation_1h_tokens,"
    " is_lower_bound, (select text from string where id = speed_string_id), cost_usd"
)
# Of a response without a message: its fragment copied messages of another session that has the response.
_COPIES_FROM_HOLDER = (
    "exists (select 1 from response other join fragment_session s on s.fragment_id = other.fragment_id"
    " join string on string.text = s.session_external_id"
    " join message copied on copied.fragment_id = o.fragment_id and copied.copied_from_string_id = string.id"
    " where other.response_hash = o.response_hash and other.fragment_id <> o.fragment_id)"
)
# All states with the start times of the selected sessions, including those of sessions that are not selected.
_STATES = (
    "select coalesce(r.started_at, -r.fragment_id), f.platform || ':' || f.session_external_id, s.session_id,"
    " r.at, r.fragment_id, r.number, (select text from string where id = r.model_string_id), r.tokens,"
    " r.cost_usd"
    " from reported_usage r join fragment_session f on f.fragment_id = r.fragment_id"
    " left join temp.selected s on s.fragment_id = r.fragment_id and s.is_own"
    " where r.started_at in (select o.started_at from temp.selected t"
    "   cross join reported_usage o on o.fragment_id = t.fragment_id where t.is_own)"
    " or (r.started_at is null and s.session_id is not null)"
    " order by 1, 2, r.at, r.fragment_id, r.number"
)
_Models = dict[str | None, tuple[int, float]]  # tokens and dollars


class UsageRecorder:
    """Collects the usage of the responses in one fragment while it is read."""

    def __init__(self) -> None:
        self._responses: dict[str, tuple[TokenUsage, Message | UsageReport]] = {}

    def add(self, response_id: str, usage: TokenUsage, item: Message | UsageReport) -> None:
        """Add the usage in a record. The records of one response repeat it with growing counts.

        Model and time of a response are those of its first message. A response without messages has those
        of its first record.
        """
        known = self._responses.get(response_id)
        if known is None:
            self._responses[response_id] = (usage, item)
        elif known[0] != usage or type(known[1]) is not Message:
            is_first_message = type(known[1]) is not Message and type(item) is Message
            first = item if is_first_message else known[1]
            self._responses[response_id] = (known[0].merged(usage), first)

    def write(
        self,
        db: sqlite3.Connection,
        strings: StringTable,
        fragment_id: int,
        opening: Opening,
        *,
        is_appended: bool,
    ) -> None:
        """Write the rows of a fragment, merged with those of an earlier read."""
        rows = []
        for response_id, (usage, item) in self._responses.items():
            response_hash = hash64(response_id)
            if is_appended and _merge_with_stored(db, strings, fragment_id, response_hash, usage):
                continue
            is_subagent = opening.agent_id is not None or item.agent_id is not None
            record_hash = NO_MESSAGE
            if type(item) is Message:
                is_subagent = is_subagent or item.is_sidechain
                record_hash = hash_record(item.id, opening.id)
            at, model = to_milliseconds(item.timestamp), strings[item.model]
            key = fragment_id, response_hash, record_hash
            rows.append((*key, at, int(is_subagent), model, *_columns(strings, usage)))
        if rows:
            db.executemany(
                "insert into response"
                " values (?, ?, ?, ?, ?, nullif(?, 0), null, ?, ?, ?, ?, nullif(?, -1), ?, nullif(?, 0),"
                " nullif(?, -1))",
                rows,
            )


def _columns(strings: StringTable, usage: TokenUsage) -> tuple[Any, ...]:
    """Return the values of a row, with -1 for values that are usually unknown: binding None is slower."""
    cache_1h, cost = usage.cache_creation_1h_input_tokens, usage.cost_usd
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        -1 if cache_1h is None else cache_1h,
        int(usage.is_at_least),
        strings[usage.speed],
        -1 if cost is None else cost,
    )


def _from_row(row: tuple[Any, ...]) -> TokenUsage:
    input_, output, cache_creation, cache_read, cache_1h, is_lower_bound, speed, cost = row
    return TokenUsage(input_, output, cache_creation, cache_read, cache_1h, bool(is_lower_bound), speed, cost)


def _merge_with_stored(
    db: sqlite3.Connection, strings: StringTable, fragment_id: int, response_hash: int, usage: TokenUsage
) -> bool:
    """Merge usage into the stored row of a response; False if there is none."""
    row = db.execute(
        f"select {_USAGE_COLUMNS} from response where fragment_id = ? and response_hash = ?",  # noqa: S608 - names are ours
        [fragment_id, response_hash],
    ).fetchone()
    if row is None:
        return False
    stored = _from_row(row)
    merged = stored.merged(usage)
    if merged != stored:
        # `is_copy = null`: the response is compared again with other fragments that contain it.
        db.execute(
            "update response set (input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens,"
            " cache_creation_1h_tokens, is_lower_bound, speed_string_id, cost_usd)"
            " = (?, ?, ?, ?, nullif(?, -1), ?, nullif(?, 0), nullif(?, -1)), is_copy = null"
            " where fragment_id = ? and response_hash = ?",
            [*_columns(strings, merged), fragment_id, response_hash],
        )
    return True


def usage_by_response(db: sqlite3.Connection, fragment_id: int) -> dict[int, TokenUsage]:
    """Return the usage of each response of a fragment, by response hash."""
    query = f"select response_hash, {_USAGE_COLUMNS} from response where fragment_id = ?"  # noqa: S608
    return {row[0]: _from_row(row[1:]) for row in db.execute(query, [fragment_id])}


def assign_response_owner(db: sqlite3.Connection) -> None:
    """Decide for each response that several fragments contain which one produced it. It counts there.

    Uses the temporary tables of `derive` and the owners of messages set by `mark_duplicate_messages`. A
    resumed session may have copied a response before it was complete, so every copy gets the highest counts.
    """
    # A message may have another owner since its tool result was read.
    db.execute(
        "insert or ignore into repeated select r.response_hash from recopied c"
        " cross join response r on r.fragment_id = c.fragment_id"
        " where exists (select 1 from message m indexed by message_record"
        "  where m.record_hash = r.record_hash and m.fragment_id = r.fragment_id"
        "  and m.position >= c.position)"
        " and exists (select 1 from response o"
        "  where o.response_hash = r.response_hash and o.fragment_id <> r.fragment_id)"
    )
    db.execute(
        "update response set is_copy = 0 where is_copy is null"
        " and fragment_id in (select fragment_id from changed)"
    )
    db.execute(
        "update response set is_copy = fragment_id <> (select o.fragment_id from response o"  # noqa: S608
        "  join fragment f on f.id = o.fragment_id"
        "  left join message m indexed by message_record"
        "   on m.record_hash = o.record_hash and m.fragment_id = o.fragment_id"
        "  where o.response_hash = response.response_hash"
        "  order by o.fragment_id in (select value from json_each(?)),"
        f"  f.status <> 'current' and m.is_active = 0, f.store in {text_list(stores_with('copy'))},"
        "  m.copied_from_string_id is not null, coalesce(o.at, ?), o.is_subagent,"
        f"  m.fragment_id is null and {_COPIES_FROM_HOLDER}, f.external_id, o.fragment_id limit 1)"
        " where response_hash in (select response_hash from repeated)",
        [json.encode(list(undone_fragments(db))).decode(), _NO_TIME],
    )
    db.execute(
        "update response set (input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens,"
        "  cache_creation_1h_tokens, is_lower_bound, cost_usd)"
        " = (select max(o.input_tokens), max(o.output_tokens), max(o.cache_creation_tokens),"
        "  max(o.cache_read_tokens), max(o.cache_creation_1h_tokens), min(o.is_lower_bound), max(o.cost_usd)"
        "  from response o where o.response_hash = response.response_hash)"
        " where response_hash in (select response_hash from repeated)"
    )


class ReportedIncrement(NamedTuple):
    """Usage that a tool reports for a session since its last state."""

    session_id: int
    at: int | None  # milliseconds
    model: str | None
    tokens: int
    usd: float


class _State(NamedTuple):
    at: int | None
    models: _Models

    @property
    def usd(self) -> float:
        return sum(usd for _, usd in self.models.values())


class _Series(NamedTuple):
    """States of one session with the same start time."""

    session_id: int | None  # None if it is not selected
    states: list[_State]


def write_reported_usage(
    db: sqlite3.Connection, strings: StringTable, fragment_id: int, totals: ReportedTotals
) -> None:
    """Replace the states of a fragment."""
    db.execute("delete from reported_usage where fragment_id = ?", [fragment_id])
    db.executemany(
        "insert into reported_usage values (?, ?, ?, ?, nullif(?, 0), ?, ?)",
        [
            (
                fragment_id,
                number,
                to_milliseconds(state.started_at),
                to_milliseconds(state.at),
                strings[model],
                tokens,
                usd,
            )
            for number, state in enumerate(totals.states)
            for model, (tokens, usd) in state.models.items()
        ],
    )


def reported_increments(db: sqlite3.Connection) -> Iterator[ReportedIncrement]:
    """Return the increments of the sessions in ``temp.selected``. They add up to what a tool reports."""
    for _, rows in groupby(db.execute(_STATES).fetchall(), key=lambda row: row[0]):
        group = [_series(list(same)) for _, same in groupby(rows, key=lambda row: row[1])]
        for series in group:
            if series.session_id is not None:
                yield from _increments(series.session_id, series.states, _state_before(series, group))


def _series(rows: Sequence[tuple[Any, ...]]) -> _Series:
    """Return the states of a session. Several files of a session can contain the same states."""
    session_id = next((row[2] for row in rows if row[2] is not None), None)
    states: list[_State] = []
    for (at, *_), same in groupby(rows, key=lambda row: row[3:6]):
        state = _State(at, {model: (tokens, usd) for *_, model, tokens, usd in same})
        if not states or states[-1].models != state.models:
            states.append(state)
    return _Series(session_id, states)


def _state_before(series: _Series, group: Sequence[_Series]) -> _Models:
    """Return the totals that a fork started with: the largest that other sessions had before it."""
    first = series.states[0]
    if first.at is None:
        return {}
    candidates = [
        state
        for other in group
        if other is not series
        for state in other.states
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
