"""Costs of sessions and subagents: as their tool reports them, otherwise estimated from their tokens.

They are the costs of `Statistics`, for a few sessions at a time. The archive stores the prices of its models,
because loading the price table takes longer than reading a page of sessions.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from backscroll.archive.connection import ReadOnlyConnection, is_busy, to_ms, transaction
from backscroll.archive.query.reported_usage import reported_increments
from backscroll.archive.session_key import PARENT
from backscroll.model.session import SessionSummary
from backscroll.model.store import HOOK_USAGE, store_rank

_BUCKET_MS = 900_000  # as in `derive.counts`, which is not loaded for a list
_UNDATED_BUCKET = -1
_FRAGMENTS = (
    "select f.platform, f.external_id, null, f.id, f.store, f.message_count"  # noqa: S608 - constants
    " from json_each(?1) j cross join fragment f on f.external_id = j.value"
    f" where (not f.is_subagent or {PARENT} is null) and length(f.closing)"
    f" union all select f.platform, {PARENT}, f.external_id, f.id, f.store, f.message_count"
    f" from json_each(?1) j cross join fragment f on {PARENT} = +j.value"
    " where f.is_subagent and length(f.closing)"
)
_COSTS = (
    "select t.fragment_id, sum(t.cost_usd), sum(t.cost_usd is null),"  # noqa: S608 - constants
    " sum(t.input_tokens * p.input_usd + t.output_tokens * p.output_usd"
    "  + t.cache_write_tokens * p.cache_write_usd + t.cache_write_1h_tokens * p.cache_write_1h_usd"
    "  + t.cache_read_tokens * p.cache_read_usd),"
    " max(p.version is null and t.model_string_id <> 0)"
    " from json_each(:ids) j cross join token_rollup t on t.fragment_id = j.value"
    " left join price p on p.rowid = (select q.rowid from price q"
    "  where q.model_string_id = t.model_string_id and q.prompt_size_class = t.prompt_size_class"
    f"  and q.first_bucket <= iif(t.bucket = {_UNDATED_BUCKET}, {1 << 60}, t.bucket)"
    "  and q.speed_string_id is nullif(t.speed_string_id, 0) and q.version = :version"
    "  order by q.first_bucket desc limit 1)"
    " group by 1"
)
_MODELS = (
    "select distinct t.model_string_id, nullif(t.speed_string_id, 0), m.text, s.text from token_rollup t"
    " join string m on m.id = t.model_string_id left join string s on s.id = t.speed_string_id"
)
_INSERT = "insert into {}price values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_Rate = tuple[int, datetime | None, tuple[float, ...] | None]
_Fragment = tuple[int, str, int]  # id, store, number of messages
_Cost = tuple[float | None, int, float | None]  # reported, rows without a reported cost, estimated
_Group = tuple[str, str, str | None]  # platform, id of the session, id of the subagent


if TYPE_CHECKING:  # start-up: creating a protocol takes a millisecond
    from typing import Protocol

    class Rates(Protocol):
        """Prices per token, by model."""

        @property
        def version(self) -> str:
            """A text that changes with the prices."""

        def of_model(self, model: str, speed: str | None) -> Iterator[_Rate]:
            """Yield the prices of a model by class of prompt size and first time."""


def with_costs(
    db: sqlite3.Connection, rates: "Rates", summaries: Sequence[SessionSummary]
) -> list[SessionSummary]:
    """Return the summaries with their costs. The cost of a session includes its subagents."""
    groups = _counted_fragments(db, {_session_id(summary) for summary in summaries})
    by_session: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for (platform, session_id, _), ids in groups.items():
        by_session[platform, session_id] += ids
    fragments: list[Sequence[int]] = [
        by_session[summary.platform, summary.id]
        if summary.parent_ref is None
        else groups.get((summary.platform, _session_id(summary), summary.id), ())
        for summary in summaries
    ]
    costs = _read_costs(db, rates, {id_ for ids in fragments for id_ in ids})
    own = {
        number: groups.get((summary.platform, summary.id, None), ())
        for number, summary in enumerate(summaries)
        if summary.parent_ref is None
    }
    totals = _reported_totals(db, own)
    return [
        _with_cost(summary, totals.get(number), [costs[id_] for id_ in ids if id_ in costs])
        for number, (summary, ids) in enumerate(zip(summaries, fragments, strict=True))
    ]


def _with_cost(summary: SessionSummary, total: float | None, costs: Sequence[_Cost]) -> SessionSummary:
    reported = [usd for usd, _, _ in costs if usd is not None]
    estimated = [usd for _, _, usd in costs if usd is not None]
    if total is None and reported and (not estimated or not any(unreported for _, unreported, _ in costs)):
        total = sum(reported)
    if total is not None:
        return replace(summary, cost_usd=round(total, 6), cost_source="reported")
    if estimated:
        return replace(summary, cost_usd=round(sum(estimated), 6), cost_source="estimated")
    return summary


def _session_id(summary: SessionSummary) -> str:
    return summary.parent_ref.partition(":")[2] if summary.parent_ref is not None else summary.id


def _counted_fragments(db: sqlite3.Connection, session_ids: Collection[str]) -> dict[_Group, list[int]]:
    """Return the fragments that count, as in `statistics`, by session and subagent."""
    groups: defaultdict[_Group, list[_Fragment]] = defaultdict(list)
    ids = msgspec.json.encode(list(session_ids)).decode()
    for platform, session_id, agent_id, *fragment in db.execute(_FRAGMENTS, [ids]):
        groups[platform, session_id, agent_id].append(tuple(fragment))
    return {group: _best(fragments) for group, fragments in groups.items()}


def _best(fragments: Sequence[_Fragment]) -> list[int]:
    if len(fragments) == 1:
        return [fragments[0][0]]
    _, best, _ = min(fragments, key=lambda fragment: (not fragment[2], store_rank(fragment[1])))
    return [id_ for id_, store, _ in fragments if store in (best, HOOK_USAGE.name)]


def _read_costs(db: sqlite3.Connection, rates: "Rates", ids: Iterable[int]) -> dict[int, _Cost]:
    parameters = {"ids": msgspec.json.encode(list(ids)).decode(), "version": rates.version}
    rows = db.execute(_COSTS, parameters).fetchall()
    if any(is_missing for *_, is_missing in rows):
        _resolve_prices(db, rates)
        rows = db.execute(_COSTS, parameters).fetchall()
    return {id_: tuple(cost) for id_, *cost, _ in rows}


def _resolve_prices(db: sqlite3.Connection, rates: "Rates") -> None:
    """Store the prices of all models. If the archive cannot be written now, keep them for this connection."""
    version = rates.version
    rows: list[tuple[Any, ...]] = []
    for model_id, speed_id, model, speed in db.execute(_MODELS).fetchall():
        for size_class, first, usd in rates.of_model(model, speed):
            bucket = to_ms(first) // _BUCKET_MS if first is not None else _UNDATED_BUCKET
            rows.append((version, model_id, speed_id, size_class, bucket, *(usd or [None] * 5)))
    if isinstance(db, ReadOnlyConnection) or db.in_transaction or not _store_prices(db, rows):
        db.execute("create temp table if not exists price as select * from main.price limit 0")
        db.execute("delete from temp.price")
        db.executemany(_INSERT.format("temp."), rows)


def _store_prices(db: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> bool:
    """Replace the stored prices. Return False if another process writes the archive."""
    (timeout,) = db.execute("pragma busy_timeout").fetchone()
    db.execute("pragma busy_timeout = 0")
    try:
        with transaction(db):
            db.execute("delete from main.price")
            db.executemany(_INSERT.format("main."), rows)
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        return False
    finally:
        db.execute(f"pragma busy_timeout = {timeout}")
    return True


def _reported_totals(db: sqlite3.Connection, own: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Return the totals that tools report for sessions. `own` are the fragments without subagents."""
    numbers = {id_: number for number, some in own.items() for id_ in some}
    ids = msgspec.json.encode(list(numbers)).decode()
    has_total = "select 1 from reported_usage where fragment_id in (select value from json_each(?)) limit 1"
    if db.execute(has_total, [ids]).fetchone() is None:
        return {}
    db.execute(
        "create temp table if not exists listed (fragment_id integer primary key, session_id integer, is_own)"
    )
    db.execute("delete from temp.listed")
    db.executemany("insert into listed values (?, ?, 1)", numbers.items())
    totals: defaultdict[int, float] = defaultdict(float)
    for increment in reported_increments(db, "temp.listed"):
        totals[increment.session_id] += increment.usd
    return totals
