"""What requests to a model cost: each response once per account, and which account made it first."""

import sqlite3
from typing import Any

from backscroll.archive.storage.codec import milliseconds, number_of, record_number
from backscroll.archive.storage.strings import Words
from backscroll.model import Message, Opening, TokenUsage

__all__ = ["Spending", "find_makers", "usage_of"]

_FAR = 1 << 61
_USAGE = (
    "input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens, cache_creation_1h_tokens,"
    " is_lower_bound, (select text from string where id = speed_string_id), cost_usd"
)


class Spending:
    """What the responses of one account cost, while it is read."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TokenUsage, Message | None]] = {}

    def spend(self, response: str, usage: TokenUsage, message: Message | None) -> None:
        """Take what a record says; the records of one response repeat it while it grows."""
        known = self._known.get(response)
        if known is None:
            self._known[response] = (usage, message)
        elif known[0] != usage or known[1] is None:
            self._known[response] = (known[0].merged(usage), known[1] or message)

    def write(
        self, db: sqlite3.Connection, words: Words, account: int, opening: Opening, *, is_appended: bool
    ) -> None:
        """Put it all into the account's rows, beside what an earlier reading said of the same responses."""
        session, is_agents = opening.id, opening.agent_id is not None
        rows = []
        for response, (usage, message) in self._known.items():
            id_ = number_of(response)
            if is_appended and _with_earlier(db, words, account, id_, usage):
                continue
            is_agent, record, at, model = is_agents, 0, None, 0
            if message is not None:
                is_agent = is_agents or message.is_sidechain
                record = record_number(message.id, session)
                at, model = milliseconds(message.timestamp), words[message.model]
            rows.append((account, id_, record, at, int(is_agent), model, *_columns(words, usage)))
        if rows:
            db.executemany(
                "insert into response"
                " values (?, ?, ?, ?, ?, nullif(?, 0), null, ?, ?, ?, ?, nullif(?, -1), ?, nullif(?, 0),"
                " nullif(?, -1))",
                rows,
            )


def _columns(words: Words, usage: TokenUsage) -> tuple[Any, ...]:
    """What a response's row has of it, with -1 for what is nearly always unknown: see `Words`."""
    hour, cost = usage.cache_creation_1h_input_tokens, usage.cost_usd
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        -1 if hour is None else hour,
        int(usage.is_at_least),
        words[usage.speed],
        -1 if cost is None else cost,
    )


def _usage(row: tuple[Any, ...]) -> TokenUsage:
    given, output, creation, reads, hour, is_at_least, speed, cost = row
    return TokenUsage(given, output, creation, reads, hour, bool(is_at_least), speed, cost)


def _with_earlier(db: sqlite3.Connection, words: Words, account: int, id_: int, usage: TokenUsage) -> bool:
    """Merge into what an earlier reading said of the response; False when it said nothing."""
    row = db.execute(
        f"select {_USAGE} from response where fragment_id = ? and response_hash = ?",  # noqa: S608 - names are ours
        [account, id_],
    ).fetchone()
    if row is None:
        return False
    earlier = _usage(row)
    merged = earlier.merged(usage)
    if merged != earlier:
        # Other accounts that tell of the response are to know of it, so it is compared with them again.
        db.execute(
            "update response set (input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens,"
            " cache_creation_1h_tokens, is_lower_bound, speed_string_id, cost_usd)"
            " = (?, ?, ?, ?, nullif(?, -1), ?, nullif(?, 0), nullif(?, -1)), is_copy = null"
            " where fragment_id = ? and response_hash = ?",
            [*_columns(words, merged), account, id_],
        )
    return True


def usage_of(db: sqlite3.Connection, account: int) -> dict[int, TokenUsage]:
    """What each response of an account cost, by the number of its id."""
    rows = db.execute(f"select response_hash, {_USAGE} from response where fragment_id = ?", [account])  # noqa: S608
    return {row[0]: _usage(row[1:]) for row in rows}


def find_makers(db: sqlite3.Connection) -> None:
    """Of the responses of changed accounts that others tell of too, say who made each first: there it counts.

    Which those are `derive` has noted, and whose the messages are is known by now. A resume may have copied
    a response before it was finished, so each is taken to have cost the most that any account says.
    """
    db.execute(
        "update response set is_copy = 0 where is_copy is null"
        " and fragment_id in (select fragment_id from changed)"
    )
    db.execute(
        "update response set is_copy = fragment_id <> (select o.fragment_id from response o"
        "  join fragment f on f.id = o.fragment_id"
        "  left join message m indexed by message_record"
        "   on m.record_hash = o.record_hash and m.fragment_id = o.fragment_id"
        "  where o.response_hash = response.response_hash"
        "  order by m.copied_from_string_id is not null, coalesce(o.at, ?), o.is_subagent, f.external_id,"
        "   o.fragment_id limit 1)"
        " where response_hash in (select response_hash from repeated)",
        [_FAR],
    )
    db.execute(
        "update response set (input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens,"
        "  cache_creation_1h_tokens, is_lower_bound, cost_usd)"
        " = (select max(o.input_tokens), max(o.output_tokens), max(o.cache_creation_tokens),"
        "  max(o.cache_read_tokens), max(o.cache_creation_1h_tokens), min(o.is_lower_bound), max(o.cost_usd)"
        "  from response o where o.response_hash = response.response_hash)"
        " where response_hash in (select response_hash from repeated)"
    )
