"""Token usage: of model responses as recorded, and of sessions as a tool reports it.

A response is stored once per fragment, and counts where it was first produced.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

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
