"""Every record that says what a response took, and what became of it in the figures."""

import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from backscroll.archive.derive.rollups import QUARTER, UNDATED
from backscroll.archive.derive.session_totals import moment
from backscroll.archive.query.messages import messages_in
from backscroll.archive.query.select_fragments import CountedSession
from backscroll.archive.storage.codec import number_of
from backscroll.model import Origin, TokenUsage
from backscroll.model.statistics import Tokens, UsageRecord, UsageVerdict

__all__ = ["usage_records"]

_RESPONSES = (
    "select r.response_hash, r.record_hash, r.at, (select text from string where id = r.model_string_id),"
    " (select text from string where id = r.speed_string_id), r.is_copy, r.input_tokens, r.output_tokens,"
    " r.cache_creation_tokens, r.cache_read_tokens, r.cache_creation_1h_tokens, r.is_lower_bound, r.cost_usd"
    " from response r where r.fragment_id = ?"
)
_MAKER = (
    "select s.platform, s.session_external_id"
    " from response r join fragment_session s on s.fragment_id = r.fragment_id"
    " where r.response_hash = ? and r.is_copy is not 1 limit 1"
)
_FORKED = (
    "select 1 from message indexed by message_record"
    " where record_hash = ? and fragment_id = ? and forked_from_string_id is not null limit 1"
)


class _Account(NamedTuple):
    number: int
    session: CountedSession
    agent_id: str | None
    is_counted: bool


class _Said(NamedTuple):
    """What one record says of a response."""

    origin: Origin
    response_id: str | None
    usage: TokenUsage


def usage_records(
    db: sqlite3.Connection, sessions: dict[int, CountedSession], first: int | None, last: int | None
) -> Iterator[UsageRecord]:
    """The usage records of the sessions in ``temp.counted``, all of them or within a span of quarters.

    Of a response that counts, the first record stands for it with the most that any of its records says.
    """
    for account in _accounts(db, sessions):
        rows = db.execute(_RESPONSES, [account.number]).fetchall()
        rows = [row for row in rows if _is_within(row[2], first, last)]
        if not rows:
            continue
        said = _said(db, account.number)
        for row in sorted(rows, key=lambda row: (row[2] is None, row[2], row[0])):
            yield from _told(db, account, row, said.get(row[0], []), sessions)


def _is_within(at: int | None, first: int | None, last: int | None) -> bool:
    if first is None and last is None:
        return True
    quarter = at // QUARTER if at is not None else UNDATED
    return quarter != UNDATED and (first is None or quarter >= first) and (last is None or quarter < last)


def _accounts(db: sqlite3.Connection, sessions: dict[int, CountedSession]) -> list[_Account]:
    """Every account of the sessions, the one that counts and others; subagents with their ids."""
    rows = db.execute(
        "select s.fragment_id, c.number,"
        " iif(s.is_subagent and s.external_id <> s.session_external_id, s.external_id, null),"
        " exists (select 1 from temp.counted t where t.fragment_id = s.fragment_id)"
        " from fragment_session s"
        " join conversations c on c.external_id = s.session_external_id and c.platform = s.platform"
        " where c.number in (select session from temp.counted)"
        " order by c.started_at, c.number, s.is_subagent, s.fragment_id"
    ).fetchall()
    return [
        _Account(number, sessions[session], agent_id, bool(is_counted))
        for number, session, agent_id, is_counted in rows
        if session in sessions
    ]


def _said(db: sqlite3.Connection, account: int) -> dict[int, list[_Said]]:
    """What the records of an account say, by the number of the response; each record once."""
    found: dict[int, list[_Said]] = {}
    for message in messages_in(db, account):
        if message.usage is None:
            continue
        known = found.setdefault(number_of(message.response_id or message.id), [])
        if all(one.origin != message.origin for one in known):
            known.append(_Said(message.origin, message.response_id, message.usage))
    return found


def _told(
    db: sqlite3.Connection,
    account: _Account,
    row: tuple[Any, ...],
    said: list[_Said],
    sessions: dict[int, CountedSession],
) -> Iterator[UsageRecord]:
    id_, record, at, model, speed, is_copy, *counts = row
    given, output, creation, read, hour, is_at_least, cost = counts
    usage = TokenUsage(given, output, creation, read, hour, bool(is_at_least), speed, cost)
    fate, reason = _fate(db, account, id_, record, sessions) if is_copy else ("counted", "")
    if not account.is_counted:
        fate, reason = "other account", "the session is told by another of its files"
    if fate == "counted" and len(said) > 1:
        reason = f"the most that {len(said)} records of it say"

    def one(place: _Said | None, share: TokenUsage, fate: UsageVerdict, reason: str) -> UsageRecord:
        return UsageRecord(
            session_ref=account.session.ref,
            agent_id=account.agent_id,
            response_id=place.response_id if place is not None else None,
            origin=place.origin if place is not None else None,
            at=moment(at),
            model=model,
            speed=speed,
            tokens=_tokens(share),
            reported_usd=share.cost_usd,
            is_at_least=share.is_at_least,
            fate=fate,
            reason=reason,
        )

    yield one(said[0] if said else None, usage, fate, reason)
    for place in said[1:]:
        repeated = "repeats the response above" if fate == "counted" else reason
        yield one(place, place.usage, "stream duplicate" if fate == "counted" else fate, repeated)


def _fate(
    db: sqlite3.Connection,
    account: _Account,
    id_: int,
    record: int,
    sessions: dict[int, CountedSession],
) -> tuple[UsageVerdict, str]:
    """Why a response does not count here: it was made elsewhere first."""
    maker = db.execute(_MAKER, [id_]).fetchone()
    if maker is None:
        return "replay", "another session made it first"
    platform, session = maker
    known = db.execute(
        "select number, source from conversations where external_id = ? and platform = ?", [session, platform]
    ).fetchone()
    if known is not None and known[0] == account.session.number:
        return "subagent copy", "counts in another file of the same session"
    ref = f"{known[1]}:{session}" if known is not None else session
    if db.execute(_FORKED, [record, account.number]).fetchone() is not None:
        return "fork prefix", f"counts in {ref}, which this session was forked from"
    return "replay", f"counts in {ref}, which made it first"


def _tokens(usage: TokenUsage) -> Tokens:
    hour = usage.cache_creation_1h_input_tokens or 0
    return Tokens(
        input=usage.input_tokens or 0,
        output=usage.output_tokens or 0,
        cache_write=(usage.cache_creation_input_tokens or 0) - hour,
        cache_write_1h=hour,
        cache_read=usage.cache_read_input_tokens or 0,
    )
