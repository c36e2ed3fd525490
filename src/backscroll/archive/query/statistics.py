"""Statistics of sessions, summed by the database from the rollups."""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from backscroll.archive.derive.reported_usage import ReportedIncrement, reported_increments
from backscroll.archive.derive.rollups import BUCKET_MS, UNDATED_BUCKET
from backscroll.archive.query.fragment_selection import SelectedSession, select_fragments
from backscroll.archive.query.usage_records import is_in_range, usage_records
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.strings import FIXED_STRING_IDS
from backscroll.archive.timestamps import to_ms
from backscroll.model import Filter
from backscroll.model.statistics import PROMPT_SIZES, UsageRecord

__all__ = [
    "ActivityTotals",
    "EditedFile",
    "GroupTotals",
    "PriceClass",
    "Statistics",
    "TokenTotals",
]

_TOKEN_SUMS = (
    "sum(t.response_count), sum(t.input_tokens), sum(t.output_tokens), sum(t.cache_write_tokens),"
    " sum(t.cache_write_1h_tokens), sum(t.cache_read_tokens), sum(t.cost_usd), max(t.is_lower_bound)"
)
_BEFORE_ALL_PRICE_CHANGES = datetime.min.replace(tzinfo=UTC)


class ActivityTotals(NamedTuple):
    """The activity of one session in one bucket of 15 minutes."""

    session_id: int
    bucket: int | None  # number of 15-minute intervals since 1970; None without a time
    messages: int
    subagent_messages: int
    prompts: int
    calls: int
    failures: int
    active_ms: int
    lines_added: int
    lines_removed: int
    decided: int
    accepted: int


class PriceClass(NamedTuple):
    """Attributes that determine the price of a response."""

    model: str | None
    speed: str | None
    prompt: int  # a prompt size with the same price
    at: datetime | None  # a time with the same prices; None without a time


class TokenTotals(NamedTuple):
    """The token counts of responses with the same price."""

    session_id: int | None  # None unless grouped by session
    bucket: int | None  # None unless grouped by bucket, and without a time
    price_class: PriceClass
    counts: tuple[int, ...]  # responses; input, output, cache write, cache write 1h, cache read tokens
    reported_usd: float | None  # cost as reported by the tool
    is_at_least: int


class GroupTotals(NamedTuple):
    """The activity of one tool, or one model, in one session."""

    name: str | None
    session_id: int
    messages: int
    calls: int
    failures: int
    lines_added: int
    lines_removed: int
    decided: int
    accepted: int


class EditedFile(NamedTuple):
    """A file with the number of its edits and edited lines."""

    path: str
    edits: int
    lines_added: int
    lines_removed: int


class Statistics:
    """Statistics of the sessions that match a filter.

    If the filter has a time range, only what happened in it counts. A range starts and ends with a bucket
    of 15 minutes. Messages without a time are in no range.
    """

    def __init__(self, db: sqlite3.Connection, filter_: Filter, only: SessionKey | None = None) -> None:
        self._db = db
        self.sessions: dict[int, SelectedSession] = select_fragments(db, filter_, only)
        self._first = _bucket(filter_.since) if filter_.since is not None else None
        self._end = _bucket(filter_.until) if filter_.until is not None else None
        self._keeps_rows = False
        self._kept_activity: list[ActivityTotals] | None = None
        self._kept_tokens: list[TokenTotals] | None = None

    def keep_rows(self) -> None:
        """Read activity and tokens once, for several reports with the same prices."""
        self._keeps_rows = True

    def fragment_ids(self) -> list[int]:
        """Return the fragments that are counted."""
        return [id_ for (id_,) in self._db.execute("select fragment_id from temp.selected")]

    def activity(self) -> Iterator[ActivityTotals]:
        """Return activity by session and bucket. Active time and prompts of subagents do not count."""
        if self._keeps_rows:
            if self._kept_activity is None:
                self._kept_activity = list(self._activity())
            return iter(self._kept_activity)
        return self._activity()

    def _activity(self) -> Iterator[ActivityTotals]:
        rows = self._db.execute(
            f"select s.session_id, nullif(a.bucket, {UNDATED_BUCKET}), iif(s.is_own, a.message_count, 0),"  # noqa: S608
            " iif(s.is_own, a.subagent_message_count, a.message_count + a.subagent_message_count),"
            " iif(s.is_own, a.prompt_count, 0), a.call_count, a.failure_count, iif(s.is_own, a.active_ms, 0),"
            " a.lines_added, a.lines_removed,"
            " iif(s.is_own, a.decided_count, 0), iif(s.is_own, a.accepted_count, 0)"
            " from temp.selected s cross join activity_rollup a on a.fragment_id = s.fragment_id"
            f" where 1{self._in_range('a.bucket')}"
        )
        return map(ActivityTotals._make, rows)

    def tokens(
        self,
        price_steps: Sequence[int],
        price_changes: Sequence[datetime],
        *,
        by_session: bool = False,
        by_bucket: bool = False,
    ) -> Iterator[TokenTotals]:
        """Return token counts by price class, each response once, in the session that first produced it.

        Prices differ between `price_steps`, which are prompt sizes of `PROMPT_SIZES`, and between
        `price_changes`. Kept rows are not summed further than by session and bucket.
        """
        if not self._keeps_rows:
            return self._tokens(price_steps, price_changes, by_session=by_session, by_bucket=by_bucket)
        if self._kept_tokens is None:
            rows = self._tokens(price_steps, price_changes, by_session=True, by_bucket=True)
            self._kept_tokens = list(rows)
        if by_session and by_bucket:
            return iter(self._kept_tokens)
        return (
            TokenTotals(
                row.session_id if by_session else None,
                row.bucket if by_bucket else None,
                row.price_class,
                row.counts,
                row.reported_usd,
                row.is_at_least,
            )
            for row in self._kept_tokens
        )

    def _tokens(
        self,
        price_steps: Sequence[int],
        price_changes: Sequence[datetime],
        *,
        by_session: bool,
        by_bucket: bool,
    ) -> Iterator[TokenTotals]:
        step = " + ".join(f"(t.prompt_size_class > {PROMPT_SIZES.index(size)})" for size in price_steps)
        period = " + ".join(f"(t.bucket >= {_bucket(at)})" for at in price_changes)
        rows = self._db.execute(
            f"select {'s.session_id' if by_session else 'null'}, {'t.bucket' if by_bucket else 'null'},"  # noqa: S608
            f" t.model_string_id, t.speed_string_id, {step or '0'},"
            f" iif(t.bucket = {UNDATED_BUCKET}, null, {period or '0'}), {_TOKEN_SUMS}"
            " from temp.selected s cross join token_rollup t on t.fragment_id = s.fragment_id"
            f" where 1{self._in_range('t.bucket')} group by 1, 2, 3, 4, 5, 6"
        )
        strings = _Strings(self._db)
        for session_id, bucket, model, speed, step_index, change_index, *counts, cost, is_lower_bound in rows:
            at = None
            if change_index is not None:
                at = price_changes[change_index - 1] if change_index else _BEFORE_ALL_PRICE_CHANGES
            prompt = price_steps[step_index - 1] + 1 if step_index else 0
            price_class = PriceClass(strings[model], strings[speed], prompt, at)
            yield TokenTotals(
                session_id,
                bucket if bucket != UNDATED_BUCKET else None,
                price_class,
                tuple(counts),
                cost,
                is_lower_bound,
            )

    def reported(self) -> Iterator[ReportedIncrement]:
        """Return the usage that the tools report for sessions, without what a fork took over."""
        for increment in reported_increments(self._db):
            if is_in_range(increment.at, self._first, self._end):
                yield increment

    def usage_records(self) -> Iterator[UsageRecord]:
        """Return all records with token counts, whether they are counted or not."""
        return usage_records(self._db, self.sessions, self._first, self._end)

    def by_tool(self) -> Iterator[GroupTotals]:
        """Return the activity of each tool by session."""
        return self._by_string(
            "tool_string_id", "t.call_count or t.lines_added or t.lines_removed or t.decided_count"
        )

    def by_model(self) -> Iterator[GroupTotals]:
        """Return the activity of each model by session."""
        return self._by_string("model_string_id", "t.model_string_id <> 0")

    def _by_string(self, column: str, condition: str) -> Iterator[GroupTotals]:
        rows = self._db.execute(
            f"select t.{column}, s.session_id, sum(t.message_count), sum(t.call_count),"  # noqa: S608
            " sum(t.failure_count), sum(t.lines_added), sum(t.lines_removed),"
            " sum(iif(s.is_own, t.decided_count, 0)), sum(iif(s.is_own, t.accepted_count, 0))"
            " from temp.selected s cross join tool_rollup t on t.fragment_id = s.fragment_id"
            f" where ({condition}){self._in_range('t.bucket')} group by 1, 2"
        )
        strings = _Strings(self._db)
        return (GroupTotals(strings[string_id], *counts) for string_id, *counts in rows)

    def edited_files(self, limit: int) -> list[EditedFile]:
        """Return the files with the most edits. Edits that several fragments repeat count once."""
        rows = self._db.execute(
            "select e.path, count(*) as edits, sum(e.lines_added), sum(e.lines_removed)"  # noqa: S608
            " from temp.selected s cross join edit e on e.fragment_id = s.fragment_id"
            " cross join message m on m.fragment_id = e.fragment_id and m.position = e.position"
            " where m.is_active and m.copied_from_string_id is null"
            " and (s.group_id is null or not exists (select 1 from message o"
            "  join temp.selected d on d.fragment_id = o.fragment_id and d.group_id = s.group_id"
            "  and d.fragment_id < s.fragment_id where o.record_hash = m.record_hash))"
            f" and m.status_string_id = {FIXED_STRING_IDS['completed']}"
            f"{self._in_range(f'coalesce(m.at / {BUCKET_MS}, {UNDATED_BUCKET})')}"
            " group by e.path order by edits desc, sum(e.lines_added + e.lines_removed) desc, e.path limit ?",
            [limit],
        )
        return [EditedFile._make(row) for row in rows]

    def _in_range(self, bucket: str) -> str:
        """Return a condition on a bucket expression that starts with "and", or nothing without a range."""
        if self._first is None and self._end is None:
            return ""
        condition = f" and {bucket} <> {UNDATED_BUCKET}"
        if self._first is not None:
            condition += f" and {bucket} >= {self._first}"
        if self._end is not None:
            condition += f" and {bucket} < {self._end}"
        return condition


class _Strings(dict[int, str | None]):
    """Interned strings by id, read on first use."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__({0: None})
        self._db = db

    def __missing__(self, id_: int) -> str | None:
        row = self._db.execute("select text from string where id = ?", [id_]).fetchone()
        self[id_] = text = row[0] if row is not None else None
        return text


def _bucket(at: datetime) -> int:
    return to_ms(at) // BUCKET_MS
