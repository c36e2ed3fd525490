"""What sessions add up to, added up by the database."""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from backscroll.archive.derive.rollups import QUARTER, UNDATED
from backscroll.archive.query.select_fragments import CountedSession, count_accounts
from backscroll.archive.query.usage_records import usage_records
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.strings import FIXED
from backscroll.model import Filter
from backscroll.model.statistics import PROMPT_SIZES, UsageRecord

__all__ = ["Done", "EditedFile", "Kind", "Part", "Spent", "Statistics"]

_TOKENS = (
    "sum(s.response_count), sum(s.input_tokens), sum(s.output_tokens), sum(s.cache_write_tokens),"
    " sum(s.cache_write_1h_tokens), sum(s.cache_read_tokens), sum(s.cost_usd), max(s.is_lower_bound)"
)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Done(NamedTuple):
    """What was done in one session within a quarter of an hour."""

    session: int
    quarter: int | None  # from 1970; None for what has no time
    messages: int
    subagent_messages: int
    prompts: int
    calls: int
    failures: int
    active: int  # milliseconds
    added: int
    removed: int
    decided: int
    accepted: int


class Kind(NamedTuple):
    """What is charged alike."""

    model: str | None
    speed: str | None
    prompt: int  # a size within the same price step
    at: datetime | None  # a moment between the same changes of prices; None for what has no time


class Spent(NamedTuple):
    """What responses of one kind took."""

    session: int | None  # None where it was not asked for
    quarter: int | None  # None as well for what has no time
    kind: Kind
    counts: tuple[int, ...]  # responses; tokens given, answered, written to a cache, for an hour, and read
    reported: float | None
    is_at_least: int


class Part(NamedTuple):
    """What one tool, or one model, did in one session."""

    name: str | None
    session: int
    messages: int
    calls: int
    failures: int
    added: int
    removed: int
    decided: int
    accepted: int


class EditedFile(NamedTuple):
    """A file, how often it was edited, and by how many lines."""

    path: str
    edits: int
    added: int
    removed: int


class Statistics:
    """The figures of the sessions that pass a filter; with a span, of what happened within it.

    A span begins and ends with a quarter of an hour. What has no time is in no span.
    """

    def __init__(self, db: sqlite3.Connection, wanted: Filter, only: SessionKey | None = None) -> None:
        self._db = db
        self.sessions: dict[int, CountedSession] = count_accounts(db, wanted, only)
        self._first = _quarter(wanted.since)
        self._last = _quarter(wanted.until)

    def _within(self, quarter: str) -> str:
        """A condition on a quarter; empty when there is no span."""
        parts = [f"{quarter} <> {UNDATED}"] if self._first is not None or self._last is not None else []
        parts += [f"{quarter} >= {self._first}"] if self._first is not None else []
        parts += [f"{quarter} < {self._last}"] if self._last is not None else []
        return "".join(f" and {part}" for part in parts)

    def done(self) -> Iterator[Done]:
        """What was done, by session and quarter. A subagent's time and prompts are not a person's."""
        rows = self._db.execute(
            "select c.session, nullif(a.bucket, -1), iif(c.is_own, a.message_count, 0),"  # noqa: S608
            " iif(c.is_own, a.subagent_message_count, a.message_count + a.subagent_message_count),"
            " iif(c.is_own, a.prompt_count, 0), a.call_count, a.failure_count, iif(c.is_own, a.active_ms, 0),"
            " a.lines_added, a.lines_removed,"
            " iif(c.is_own, a.decided_count, 0), iif(c.is_own, a.accepted_count, 0)"
            " from temp.counted c cross join activity_rollup a on a.fragment_id = c.fragment_id"
            f" where 1{self._within('a.bucket')}"
        )
        return map(Done._make, rows)

    def spent(
        self,
        steps: Sequence[int],
        changes: Sequence[datetime],
        *,
        by_session: bool = False,
        by_quarter: bool = False,
    ) -> Iterator[Spent]:
        """What responses took, each where it was first made; with session and quarter where asked for.

        ``steps`` are sizes of prompts, of `PROMPT_SIZES`, and ``changes`` moments, that prices tell apart.
        """
        step = " + ".join(f"(s.prompt_size_class > {PROMPT_SIZES.index(size)})" for size in steps) or "0"
        session, quarter = "c.session" if by_session else "null", "s.bucket" if by_quarter else "null"
        period = " + ".join(f"(s.bucket >= {_quarter(at)})" for at in changes) or "0"
        rows = self._db.execute(
            f"select {session}, {quarter}, s.model_string_id, s.speed_string_id, {step},"  # noqa: S608
            f" iif(s.bucket = {UNDATED}, null, {period}), {_TOKENS}"
            " from temp.counted c cross join token_rollup s on s.fragment_id = c.fragment_id"
            f" where 1{self._within('s.bucket')} group by 1, 2, 3, 4, 5, 6"
        )
        words = _Names(self._db)
        for number, at, model, speed, size, change, *counts, cost, is_at_least in rows:
            kind = Kind(
                words[model],
                words[speed],
                steps[size - 1] + 1 if size else 0,
                None if change is None else changes[change - 1] if change else _LONG_AGO,
            )
            yield Spent(number, at if at != UNDATED else None, kind, tuple(counts), cost, is_at_least)

    def usage_records(self) -> Iterator[UsageRecord]:
        """Every record that says what a response took, counted or not."""
        return usage_records(self._db, self.sessions, self._first, self._last)

    def by_tool(self) -> Iterator[Part]:
        """What each tool did, by session."""
        return self._parts(
            "tool_string_id", "w.call_count or w.lines_added or w.lines_removed or w.decided_count"
        )

    def by_model(self) -> Iterator[Part]:
        """What each model said and did, by session."""
        return self._parts("model_string_id", "w.model_string_id <> 0")

    def _parts(self, column: str, which: str) -> Iterator[Part]:
        rows = self._db.execute(
            f"select w.{column}, c.session, sum(w.message_count), sum(w.call_count), sum(w.failure_count),"  # noqa: S608
            " sum(w.lines_added), sum(w.lines_removed), sum(iif(c.is_own, w.decided_count, 0)),"
            " sum(iif(c.is_own, w.accepted_count, 0))"
            " from temp.counted c cross join tool_rollup w on w.fragment_id = c.fragment_id"
            f" where ({which}){self._within('w.bucket')} group by 1, 2"
        )
        words = _Names(self._db)
        return (Part(words[word], *counts) for word, *counts in rows)

    def edited_files(self, limit: int) -> list[EditedFile]:
        """The files that were edited most often."""
        within = self._within(f"coalesce(m.at / {QUARTER}, {UNDATED})")
        rows = self._db.execute(
            "select e.path, count(*) as edits, sum(e.lines_added), sum(e.lines_removed)"  # noqa: S608
            " from temp.counted c cross join edit e on e.fragment_id = c.fragment_id"
            " cross join message m on m.fragment_id = e.fragment_id and m.position = e.position"
            " where m.is_active and m.copied_from_string_id is null and (c.team is null or not"
            " exists (select 1"
            "  from message o join temp.counted d on d.fragment_id = o.fragment_id and d.team = c.team"
            "  and d.fragment_id < c.fragment_id where o.record_hash = m.record_hash))"
            f" and m.status_string_id = {FIXED['completed']}{within}"
            " group by e.path order by edits desc, sum(e.lines_added + e.lines_removed) desc, e.path limit ?",
            [limit],
        )
        return [EditedFile._make(row) for row in rows]


class _Names(dict[int, str | None]):
    """Words by their numbers."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__({0: None})
        self._db = db

    def __missing__(self, number: int) -> str | None:
        row = self._db.execute("select text from string where id = ?", [number]).fetchone()
        self[number] = text = row[0] if row is not None else None
        return text


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _quarter(at: datetime | None) -> int | None:
    return _milliseconds(at) // QUARTER if at is not None else None
