"""What was done and spent in each quarter of an hour: counted once, so that years add up at once."""

import sqlite3
from collections import defaultdict

from msgspec import Struct, field

from backscroll.model.statistics import PROMPT_SIZES

__all__ = ["PAUSE", "QUARTER", "UNDATED", "Done", "Quarters"]

QUARTER = 900_000  # milliseconds: the largest span that lies within one day in every time zone
UNDATED = -1  # the quarter of what has no time
PAUSE = 300_000  # milliseconds without a message after which nobody was at work

_ACTIVITY = "insert into activity_rollup values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WORK = "insert into tool_rollup values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Each response once: is_copy says that another account made it first.
_SPENDING = (
    f"insert into token_rollup select fragment_id, coalesce(at / {QUARTER}, {UNDATED}),"  # noqa: S608
    " coalesce(model_string_id, 0), coalesce(speed_string_id, 0),"
    f" {' + '.join(f'(prompt > {size})' for size in PROMPT_SIZES)} as prompt_size_class, count(*),"
    " sum(coalesce(input_tokens, 0)), sum(coalesce(output_tokens, 0)),"
    " sum(coalesce(cache_creation_tokens, 0) - coalesce(cache_creation_1h_tokens, 0)),"
    " sum(coalesce(cache_creation_1h_tokens, 0)), sum(coalesce(cache_read_tokens, 0)), sum(cost_usd),"
    " max(is_lower_bound)"
    " from (select *, coalesce(input_tokens, 0) + coalesce(cache_creation_tokens, 0)"
    "  + coalesce(cache_read_tokens, 0) as prompt"
    "  from response where fragment_id = ? and is_copy is not 1) group by 2, 3, 4, 5"
)
_SPENT = (
    "select sum(input_tokens + output_tokens + cache_write_tokens + cache_write_1h_tokens"
    " + cache_read_tokens), max(is_lower_bound) from token_rollup where fragment_id = ?"
)
_MANY = 10_000  # rows that are written together


class _Sums(Struct):
    """What was said in a quarter."""

    messages: int = 0
    agent_messages: int = 0
    prompts: int = 0
    calls: int = 0
    failures: int = 0


class _Work(Struct):
    """What a tool, or a model with it, did in a quarter."""

    messages: int = 0
    calls: int = 0
    failures: int = 0
    added: int = 0
    removed: int = 0
    decided: int = 0
    accepted: int = 0


class Done(Struct):
    """What was done in the quarters of one account, while it is counted."""

    sums: defaultdict[int, _Sums] = field(default_factory=lambda: defaultdict(_Sums))  # by quarter
    work: defaultdict[tuple[int, int, int], _Work] = field(  # by quarter, tool and model
        default_factory=lambda: defaultdict(_Work)
    )
    active: dict[int, int] = field(default_factory=dict)  # milliseconds, each in the quarter that it ends in


class Quarters:
    """The rows of quarters, written many accounts at a time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._accounts: list[tuple[int]] = []
        self._activity: list[tuple[int, ...]] = []
        self._work: list[tuple[int, ...]] = []

    def write(self, account: int, done: Done) -> None:
        """Have these rows of an account in place of those it has."""
        edits = {quarter: [0, 0, 0, 0] for quarter in done.sums}
        for (quarter, tool, model), one in done.work.items():
            changed = one.added, one.removed, one.decided, one.accepted
            self._work.append(
                (account, quarter, tool, model, one.messages, one.calls, one.failures, *changed)
            )
            if any(changed):
                edits[quarter] = [a + b for a, b in zip(edits[quarter], changed, strict=True)]
        for quarter, sums in done.sums.items():
            self._activity.append(
                (
                    account,
                    quarter,
                    sums.messages,
                    sums.agent_messages,
                    sums.prompts,
                    sums.calls,
                    sums.failures,
                    done.active.get(quarter, 0),
                    *edits[quarter],
                )
            )
        self._accounts.append((account,))
        if len(self._work) > _MANY:
            self.close()

    def close(self) -> None:
        """Write what is not yet written."""
        db = self._db
        db.executemany("delete from activity_rollup where fragment_id = ?", self._accounts)
        db.executemany("delete from tool_rollup where fragment_id = ?", self._accounts)
        db.executemany(_ACTIVITY, self._activity)
        db.executemany(_WORK, self._work)
        self._accounts, self._activity, self._work = [], [], []

    def spend(self, account: int) -> tuple[int | None, bool]:
        """Count anew what the responses of an account took: the tokens, and whether there were more.

        None when nobody counted them.
        """
        self._db.execute("delete from token_rollup where fragment_id = ?", [account])
        self._db.execute(_SPENDING, [account])
        tokens, is_at_least = self._db.execute(_SPENT, [account]).fetchone()
        return tokens, bool(is_at_least)
