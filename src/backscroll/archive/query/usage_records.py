"""Every record with token counts, with the reason why it is or is not counted."""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from backscroll.archive.derive.rollups import BUCKET_MS, UNDATED_BUCKET
from backscroll.archive.query.fragment_selection import SelectedSession
from backscroll.archive.query.message_reader import fragment_messages
from backscroll.archive.storage.codec import hash64
from backscroll.archive.timestamps import from_ms
from backscroll.model import Origin, TokenUsage
from backscroll.model.statistics import Tokens, UsageRecord, UsageVerdict

__all__ = ["is_in_range", "usage_records"]

_RESPONSES = (
    "select r.response_hash, r.record_hash, r.at, (select text from string where id = r.model_string_id),"
    " (select text from string where id = r.speed_string_id), r.is_copy, r.input_tokens, r.output_tokens,"
    " r.cache_creation_tokens, r.cache_read_tokens, r.cache_creation_1h_tokens, r.is_lower_bound, r.cost_usd"
    " from response r where r.fragment_id = ? order by r.at is null, r.at, r.response_hash"
)
_OWNER = (
    "select s.platform, s.session_external_id"
    " from response r join fragment_session s on s.fragment_id = r.fragment_id"
    " where r.response_hash = ? and r.is_copy is not 1 limit 1"
)
_FORKED = (
    "select 1 from message indexed by message_record"
    " where record_hash = ? and fragment_id = ? and forked_from_string_id is not null limit 1"
)


class _Fragment(NamedTuple):
    id: int
    session: SelectedSession
    agent_id: str | None
    is_selected: bool
    is_counted: bool


class _Response(NamedTuple):
    """One row of the table response."""

    response_hash: int
    record_hash: int
    at: int | None
    model: str | None
    speed: str | None
    is_copy: bool
    input_tokens: int | None
    output_tokens: int | None
    cache_creation_tokens: int | None
    cache_read_tokens: int | None
    cache_creation_1h_tokens: int | None
    is_lower_bound: bool
    cost_usd: float | None

    def usage(self) -> TokenUsage:
        return TokenUsage(
            self.input_tokens,
            self.output_tokens,
            self.cache_creation_tokens,
            self.cache_read_tokens,
            self.cache_creation_1h_tokens,
            bool(self.is_lower_bound),
            self.speed,
            self.cost_usd,
        )


class _Record(NamedTuple):
    """One record with token counts of a response."""

    origin: Origin
    response_id: str | None
    usage: TokenUsage


def usage_records(
    db: sqlite3.Connection,
    sessions: dict[int, SelectedSession],
    first_bucket: int | None,
    end_bucket: int | None,
) -> Iterator[UsageRecord]:
    """Return the usage records of the fragments in ``temp.selected``, all or within a range of buckets.

    A counted response has the largest counts of all its records. They are listed with its first record.
    """
    for fragment in _fragments(db, sessions):
        responses = [
            response
            for response in map(_Response._make, db.execute(_RESPONSES, [fragment.id]).fetchall())
            if is_in_range(response.at, first_bucket, end_bucket)
        ]
        if not responses:
            continue
        records = _records_by_response(db, fragment.id)
        for response in responses:
            yield from _explain(db, fragment, response, records.get(response.response_hash, []))


def is_in_range(at: int | None, first_bucket: int | None, end_bucket: int | None) -> bool:
    """Return whether a time in milliseconds is in a range of buckets. A time that is unknown is in none."""
    if first_bucket is None and end_bucket is None:
        return True
    bucket = at // BUCKET_MS if at is not None else UNDATED_BUCKET
    return (
        bucket != UNDATED_BUCKET
        and (first_bucket is None or bucket >= first_bucket)
        and (end_bucket is None or bucket < end_bucket)
    )


def _fragments(db: sqlite3.Connection, sessions: dict[int, SelectedSession]) -> list[_Fragment]:
    """Return all fragments of the sessions, selected or not. Those of subagents have an agent id."""
    is_counted = "exists (select 1 from token_rollup t where t.fragment_id = s.fragment_id)"
    rows = db.execute(
        "select s.fragment_id, c.number,"  # noqa: S608 - constants
        " iif(s.is_subagent and s.external_id <> s.session_external_id, s.external_id, null),"
        " exists (select 1 from temp.selected t where t.fragment_id = s.fragment_id)"
        f"  and (f.store <> 'usage' or {is_counted}), {is_counted}"
        " from fragment_session s join fragment f on f.id = s.fragment_id"
        " join conversations c on c.external_id = s.session_external_id and c.platform = s.platform"
        " where c.number in (select session_id from temp.selected)"
        " order by c.started_at, c.number, s.is_subagent, s.fragment_id"
    ).fetchall()
    return [
        _Fragment(id_, sessions[session_id], agent_id, bool(is_selected), bool(is_counted))
        for id_, session_id, agent_id, is_selected, is_counted in rows
        if session_id in sessions
    ]


def _records_by_response(db: sqlite3.Connection, fragment_id: int) -> dict[int, list[_Record]]:
    """Return the records of a fragment by response hash. A record with several messages is listed once."""
    found: dict[int, list[_Record]] = {}
    for message in fragment_messages(db, fragment_id):
        if message.usage is None:
            continue
        records = found.setdefault(hash64(message.response_id or message.id), [])
        if all(record.origin != message.origin for record in records):
            records.append(_Record(message.origin, message.response_id, message.usage))
    return found


def _explain(
    db: sqlite3.Connection, fragment: _Fragment, response: _Response, records: list[_Record]
) -> Iterator[UsageRecord]:
    verdict, reason = _verdict(db, fragment, response)
    if verdict == "counted" and len(records) > 1:
        reason = f"the largest counts of its {len(records)} records"

    def usage_record(
        record: _Record | None, usage: TokenUsage, verdict: UsageVerdict, reason: str
    ) -> UsageRecord:
        return UsageRecord(
            session_ref=fragment.session.ref,
            agent_id=fragment.agent_id,
            response_id=record.response_id if record is not None else None,
            origin=record.origin if record is not None else None,
            at=from_ms(response.at) if response.at is not None else None,
            model=response.model,
            speed=response.speed,
            tokens=_tokens(usage),
            reported_usd=usage.cost_usd,
            is_at_least=usage.is_at_least,
            fate=verdict,
            reason=reason,
        )

    yield usage_record(records[0] if records else None, response.usage(), verdict, reason)
    for record in records[1:]:
        if verdict == "counted":
            yield usage_record(record, record.usage, "stream duplicate", "repeats the response above")
        else:
            yield usage_record(record, record.usage, verdict, reason)


def _verdict(db: sqlite3.Connection, fragment: _Fragment, response: _Response) -> tuple[UsageVerdict, str]:
    """Return whether a response counts in this fragment, and why not."""
    if not fragment.is_selected:
        return "other account", "the session's content is taken from another file"
    if not response.is_copy and not fragment.is_counted:
        return "discarded", "the result was discarded"
    if not response.is_copy:
        return "counted", ""
    owner = db.execute(_OWNER, [response.response_hash]).fetchone()
    if owner is None:
        return "replay", "another session produced it first"
    platform, external_id = owner
    session = db.execute(
        "select number, source from conversations where external_id = ? and platform = ?",
        [external_id, platform],
    ).fetchone()
    if session is not None and session[0] == fragment.session.id:
        return "subagent copy", "counts in another file of the same session"
    ref = f"{session[1]}:{external_id}" if session is not None else external_id
    if db.execute(_FORKED, [response.record_hash, fragment.id]).fetchone() is not None:
        return "fork prefix", f"counts in {ref}, which this session was forked from"
    return "replay", f"counts in {ref}, which produced it first"


def _tokens(usage: TokenUsage) -> Tokens:
    cache_write_1h = usage.cache_creation_1h_input_tokens or 0
    return Tokens(
        input=usage.input_tokens or 0,
        output=usage.output_tokens or 0,
        cache_write=(usage.cache_creation_input_tokens or 0) - cache_write_1h,
        cache_write_1h=cache_write_1h,
        cache_read=usage.cache_read_input_tokens or 0,
    )
