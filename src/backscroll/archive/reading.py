"""Sessions as people ask for them: in pages, by ref, message by message."""

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from backscroll.archive.accounts import Account, accounts_of, agents_of, told_by
from backscroll.archive.bases import Plain
from backscroll.archive.bodies import decoded, number_of, unpack
from backscroll.archive.derive import Session
from backscroll.archive.filters import Filter, condition
from backscroll.archive.notes import noted
from backscroll.archive.responses import usage_of
from backscroll.model import Message, SessionSummary, TokenUsage

__all__ = [
    "by_number",
    "count",
    "extent",
    "find",
    "messages_in",
    "messages_of",
    "numbered",
    "summaries",
]

_COLUMNS = (
    "external_id, source, platform, title, workspace_path, workspace_name, message_count, started_at,"
    " updated_at, first_message_preview, git_branch, models, version, agent_ids, interaction_count,"
    " acceptance_rate, total_tokens, total_changes, completeness, is_gone"
)
_AGENTS = (
    "select agent_id as external_id, source, platform, title, (select p.workspace_path from conversations p"
    " where p.external_id = parent_id and p.platform = subagent.platform) as workspace_path,"
    " (select p.workspace_name from conversations p"
    " where p.external_id = parent_id and p.platform = subagent.platform) as workspace_name,"
    " message_count, started_at, updated_at, prompt as first_message_preview, null as git_branch,"
    " iif(model is null, '[]', json_array(model)) as models, null as version, '[]' as agent_ids,"
    " 0 as interaction_count, null as acceptance_rate, total_tokens, 0 as total_changes, completeness,"
    " is_gone, parent_id, number from subagent where visibility in ('listed', 'archived')"
)


def _source_table(condition: str, wanted: Filter) -> str:
    own = f"select {_COLUMNS}, null as parent_id, number from conversations where {condition}"  # noqa: S608
    if not wanted.with_subagents:
        return own
    return (
        f"{own} union all {_AGENTS} and exists (select 1 from conversations c where c.external_id ="  # noqa: S608
        f" subagent.parent_id and c.platform = subagent.platform and {condition})"
    )


def count(db: sqlite3.Connection, wanted: Filter) -> int:
    """How many sessions pass."""
    passing, values = condition(db, wanted)
    table = _source_table(passing, wanted)
    return int(db.execute(f"select count(*) from ({table})", values).fetchone()[0])  # noqa: S608


def summaries(db: sqlite3.Connection, wanted: Filter, *, limit: int, offset: int) -> list[SessionSummary]:
    """One page, newest first."""
    passing, values = condition(db, wanted)
    order = "updated_at desc, parent_id is not null, number desc, external_id"
    rows = db.execute(
        f"select * from ({_source_table(passing, wanted)}) order by {order} limit :limit offset :offset",  # noqa: S608
        {**values, "limit": limit, "offset": offset},
    )
    return noted(db, [_summary(row, offset + place) for place, row in enumerate(rows, start=1)])


def _summary(row: tuple[Any, ...], index: int | None) -> SessionSummary:
    (
        id_, source, platform, title, path, name, messages, created, updated, preview, branch, models,
        version, agent_ids, interactions, rate, tokens, changes, completeness, gone, parent, *_,
    ) = row  # fmt: skip
    return SessionSummary(
        ref=f"{source}:{id_}",
        id=id_,
        index=index,
        source=source,
        platform=platform,
        title=title,
        workspace_path=path,
        workspace_name=name,
        message_count=messages,
        created_at=_moment(created),
        updated_at=_moment(updated),
        first_message_preview=preview,
        git_branch=branch,
        models=tuple(msgspec.json.decode(models, type=list[str])),
        version=version,
        agent_ids=tuple(msgspec.json.decode(agent_ids, type=list[str])),
        parent_ref=f"{source}:{parent}" if parent is not None else None,
        interaction_count=interactions,
        acceptance_rate=rate,
        total_tokens=tokens,
        total_changes=changes,
        completeness=completeness,
        is_gone=bool(gone),
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None


def find(db: sqlite3.Connection, id_: str, *, limit: int = 20) -> list[SessionSummary]:
    """Sessions and subagents whose id begins so; an exact id alone when there is one."""
    everything = f"select {_COLUMNS}, null as parent_id, number from conversations union all {_AGENTS}"  # noqa: S608
    exact = db.execute(f"select * from ({everything}) where external_id = ?", [id_]).fetchall()  # noqa: S608
    if not exact:
        upper = id_[:-1] + chr(ord(id_[-1]) + 1) if id_ else ""
        exact = db.execute(
            f"select * from ({everything}) where external_id >= ? and external_id < ? limit ?",  # noqa: S608
            [id_, upper, limit],
        ).fetchall()
    return noted(db, [_summary(row, None) for row in exact])


def by_number(db: sqlite3.Connection, number: int) -> SessionSummary | None:
    """The session or subagent that has this number."""
    row = db.execute(
        f"select {_COLUMNS}, null as parent_id, number from conversations where number = :number"  # noqa: S608
        f" union all {_AGENTS} and number = :number",
        {"number": number},
    ).fetchone()
    return noted(db, [_summary(row, None)])[0] if row is not None else None


def numbered(db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, SessionSummary]:
    """The sessions and subagents that have these numbers, by number."""
    wanted = "number in (select value from json_each(:numbers))"
    rows = db.execute(
        f"select {_COLUMNS}, null as parent_id, number from conversations where {wanted}"  # noqa: S608
        f" union all {_AGENTS} and {wanted}",
        {"numbers": msgspec.json.encode(list(numbers)).decode()},
    )
    found = rows.fetchall()
    summaries = noted(db, [_summary(row, None) for row in found])
    return {row[-1]: summary for row, summary in zip(found, summaries, strict=True)}


def messages_of(db: sqlite3.Connection, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
    """The messages of a session or a subagent from a position on, in order, as they stand today.

    Told by one account, as nearly all are, they come piece by piece and are never all in memory, and what is
    before the position is not read.
    """
    accounts, agent_id = _accounts(db, summary)
    if start and len(accounts) == 1 and agent_id is None and not accounts[0].is_former:
        # With the one before it, which may be of the same response.
        some = _with_usage(messages_in(db, accounts[0].number, start - 1), usage_of(db, accounts[0].number))
        return islice(some, 1, None)
    return islice(_messages_of(db, accounts, agent_id), start, None)


def extent(db: sqlite3.Connection, summary: SessionSummary) -> tuple[int | None, int]:
    """Which account tells of a session and how many messages it has; None when there are several."""
    accounts, agent_id = _accounts(db, summary)
    if len(accounts) == 1 and agent_id is None and not accounts[0].is_former:
        return accounts[0].number, accounts[0].messages
    return None, sum(1 for _ in _messages_of(db, accounts, agent_id))


def _messages_of(db: sqlite3.Connection, accounts: list[Account], agent_id: str | None) -> Iterator[Message]:
    told = [
        _left_in(db, account.number) if account.is_former else messages_in(db, account.number)
        for account in accounts
    ]
    if agent_id is not None:
        told = [(message for message in own if message.agent_id == agent_id) for own in told]
    if len(accounts) == 1:
        return _with_usage(told[0], usage_of(db, accounts[0].number))
    messages: list[Message] = []
    for account, own in zip(accounts, told, strict=True):
        known = {_identity(message, account) for message in messages}
        more = [message for message in own if _identity(message, account) not in known]
        messages = sorted([*messages, *more], key=_time) if messages and more else messages + more
    return _with_usage(messages, _merged_usage(messages))


def _left_in(db: sqlite3.Connection, account: int) -> Iterator[Message]:
    """Those messages of a former account that its unit no longer tells; of the others it has no rows."""
    rows = db.execute("select position from message where account = ?", [account])
    left = {place for (place,) in rows}
    return (message for place, message in enumerate(messages_in(db, account)) if place in left)


def _identity(message: Message, account: Account) -> tuple[str | None, ...]:
    """What makes a message of an account another one than those before it.

    What a unit said otherwise before, under the same id, is a message of its own.
    """
    if not account.is_former:
        return (message.id,)
    return message.id, message.content, message.tool.result if message.tool is not None else None


def _time(message: Message) -> float:
    return message.timestamp.timestamp() if message.timestamp is not None else float("inf")


def _accounts(db: sqlite3.Connection, summary: SessionSummary) -> tuple[list[Account], str | None]:
    """Where a session's messages lie; for a subagent inlined in its parent, the parent's and its own id."""
    if summary.parent_ref is None:
        return told_by(accounts_of(db, Session(summary.platform, summary.id))), None
    parent = Session(summary.platform, summary.parent_ref.partition(":")[2])
    own = agents_of(db, parent).get(summary.id)
    if own is not None:
        return told_by(own), None
    return told_by(accounts_of(db, parent)), summary.id


def messages_in(db: sqlite3.Connection, account: int, start: int = 0) -> Iterator[Message]:
    """An account's messages from a position on, with what was said of them later: whether they are still
    shown, and whose they are; but without what they cost."""
    at = db.execute(
        "select position from chunk where account = ? and position <= ? order by position desc limit 1",
        [account, start],
    ).fetchone()
    begin = at[0] if at is not None else 0
    changed = {
        place: (bool(active), copied)
        for place, active, copied in db.execute(
            "select position, is_active, text from message left join word on number = copied_from"
            " where account = ? and position >= ? and (not is_active or copied_from is not null)",
            [account, start],
        )
    }
    plain = Plain(db)
    for first, body in db.execute(
        "select position, body from chunk where account = ? and position >= ? order by position",
        [account, begin],
    ):
        messages = decoded(plain.chunk(body))
        for place, amended in db.execute(
            "select position, body from amendment where account = ? and position between ? and ?",
            [account, first, first + len(messages) - 1],
        ):
            messages[place - first] = unpack(amended)[0]
        passed = max(0, start - first)
        for place, message in enumerate(messages[passed:], start=first + passed):
            active, copied = changed.get(place, (True, None))
            if active is not message.is_active or copied != message.copied_from:
                message = replace(message, is_active=active, copied_from=copied)
            yield message


def _merged_usage(messages: Iterable[Message]) -> dict[int, TokenUsage]:
    """What each response cost, by the number of its id, where several accounts tell of it."""
    usage: dict[int, TokenUsage] = {}
    for message in messages:
        if message.usage is not None and message.response_id is not None:
            number = number_of(message.response_id)
            known = usage.get(number)
            usage[number] = known.merged(message.usage) if known else message.usage
    return usage


def _with_usage(messages: Iterable[Message], usage: dict[int, TokenUsage]) -> Iterator[Message]:
    """Each response's cost on its first message and nowhere else."""
    last = None  # the messages of a response follow each other
    for message in messages:
        share = message.usage
        if message.response_id is not None:
            share = usage.pop(number_of(message.response_id), None) if message.response_id != last else None
            last = message.response_id
        yield message if share is message.usage else replace(message, usage=share)
