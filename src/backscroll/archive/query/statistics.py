"""Statistics of sessions, summed by the database from the rollups.

They count the fragments with the content of the sessions, and of the subagents that these started.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec.structs import replace

from backscroll.archive.connection import from_ms, to_ms
from backscroll.archive.derive.counts import BUCKET_MS, UNDATED_BUCKET
from backscroll.archive.query.messages import fragment_messages
from backscroll.archive.query.reported_usage import ReportedIncrement, reported_increments
from backscroll.archive.query.sessions import where_clause
from backscroll.archive.query.workspaces import matches_pattern
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import hash64
from backscroll.archive.storage.strings import FIXED_STRING_IDS
from backscroll.model.message import Origin, TokenUsage
from backscroll.model.session import Filter
from backscroll.model.statistics import PROMPT_SIZES, Tokens, UsageRecord, UsageVerdict
from backscroll.model.store import HOOK_USAGE, store_rank

_BEFORE_ALL_PRICE_CHANGES = datetime.min.replace(tzinfo=UTC)
_TOKEN_SUMS = (
    "sum(t.response_count), sum(t.input_tokens), sum(t.output_tokens), sum(t.cache_write_tokens),"
    " sum(t.cache_write_1h_tokens), sum(t.cache_read_tokens), sum(t.cost_usd), max(t.is_lower_bound)"
)

# The path on another machine starts with its host. Few sessions have one, so metadata is rarely parsed.
_WORKSPACE = (
    "iif(instr(metadata, 'workspace_authority'),"
    " json_extract(metadata, '$.workspace_authority') || ':' || workspace_path, workspace_path)"
)
_PARENT = "coalesce(parent_external_id, inferred_parent_external_id)"
# The fragments of a session as in the view `fragment_session`, found by an index. The unary plus removes the
# type affinity of the column, with which SQLite would not use the index of the expression.
_SESSION_FRAGMENTS = (
    "select id from fragment where external_id = conversations.external_id"  # noqa: S608 - constants
    f" and platform = conversations.platform and (not is_subagent or {_PARENT} is null)"
    f" union all select id from fragment where {_PARENT} = +conversations.external_id"
    " and platform = conversations.platform and is_subagent = 1"
)
# A copied session has no tokens of its own: they are those of the original. Few sessions have no prompt.
# SQLite 3.40 evaluates both operands of "and" and "or" here, but only one branch of a "case".
_HAS_TOKENS = (
    "case when total_tokens is not null then 1"  # noqa: S608 - constants
    " when message_count = 0 or interaction_count > 0 then 0"
    " else not exists (select 1 from activity_rollup"
    f" where message_count > 0 and fragment_id in ({_SESSION_FRAGMENTS})) end"
)
_FRAGMENTS = (
    f"select external_id, platform, {_PARENT}, is_subagent, id, store, message_count"  # noqa: S608 - constants
    " from fragment where length(closing)"
)

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

_MODEL_SESSIONS = (
    "select s.session_id from temp.selected s where exists (select 1 from tool_rollup t"
    " where t.fragment_id = s.fragment_id and t.model_string_id in ({0}))"
    " or exists (select 1 from token_rollup t"
    " where t.fragment_id = s.fragment_id and t.model_string_id in ({0}))"
)


class SelectedSession(NamedTuple):
    """A session, with the values that statistics group by."""

    id: int
    ref: str
    source: str
    workspace_path: str | None  # with the host for another machine
    title: str | None
    preview: str | None
    has_tokens: bool  # the tool stored token counts, or all messages are copies
    message_count: int  # with messages that another session contained first


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
    of 15 minutes. Messages without a time are in no range. If it has a model, only messages and responses of
    that model count, those of subagents included.
    """

    def __init__(self, db: sqlite3.Connection, filter_: Filter, only: SessionKey | None = None) -> None:
        self._db = db
        self.sessions: dict[int, SelectedSession] = _select_fragments(db, replace(filter_, model=None), only)
        self._models: str | None = None
        self._pattern: str | None = None
        if filter_.model is not None:
            self._pattern = (filter_.model if "*" in filter_.model else f"*{filter_.model}*").lower()
            self._models = _select_models(db, self._pattern)
            used = {id_ for (id_,) in db.execute(_MODEL_SESSIONS.format(self._models))}
            self.sessions = {id_: session for id_, session in self.sessions.items() if id_ in used}
        self._first = _bucket(filter_.since) if filter_.since is not None else None
        self._end = _bucket(filter_.until) if filter_.until is not None else None
        self._keeps_rows = False
        self._kept_activity: list[ActivityTotals] | None = None
        self._kept_tokens: list[TokenTotals] | None = None

    @property
    def is_of_models(self) -> bool:
        """Whether only messages of some models count: prompts and active time are unknown."""
        return self._models is not None

    def keep_rows(self) -> None:
        """Read activity and tokens once, for several reports with the same prices."""
        self._keeps_rows = True

    def listed_subagent_messages(self) -> int:
        """Return the messages of the subagents in the list. Copies of a subagent are listed once."""
        (count,) = self._db.execute(
            "select coalesce(sum(message_count), 0) from (select max(s.message_count) as message_count"
            " from subagent s join conversations c on c.external_id = s.parent_external_id"
            " and c.platform = s.platform where c.number in (select session_id from temp.selected)"
            " and s.visibility in ('listed', 'archived') group by s.platform, s.agent_id)"
        ).fetchone()
        return int(count)

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
        if self._models is not None:
            return self._activity_of_models()
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

    def _activity_of_models(self) -> Iterator[ActivityTotals]:
        rows = self._db.execute(
            f"select s.session_id, nullif(t.bucket, {UNDATED_BUCKET}),"  # noqa: S608
            " sum(iif(s.is_own, t.message_count, 0)), sum(iif(s.is_own, 0, t.message_count)), 0,"
            " sum(t.call_count), sum(t.failure_count), 0, sum(t.lines_added), sum(t.lines_removed),"
            " sum(iif(s.is_own, t.decided_count, 0)), sum(iif(s.is_own, t.accepted_count, 0))"
            " from temp.selected s cross join tool_rollup t on t.fragment_id = s.fragment_id"
            f" where 1{self._in_range('t.bucket')}{self._of_models('t.model_string_id')} group by 1, 2"
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
            f" where 1{self._in_range('t.bucket')}{self._of_models('t.model_string_id')}"
            " group by 1, 2, 3, 4, 5, 6"
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
            if not _is_in_range(increment.at, self._first, self._end):
                continue
            if self._pattern is None or matches_pattern((increment.model or "").lower(), self._pattern):
                yield increment

    def usage_records(self) -> Iterator[UsageRecord]:
        """Return all records with token counts, whether they are counted or not."""
        for record in _usage_records(self._db, self.sessions, self._first, self._end):
            if self._pattern is None or matches_pattern((record.model or "").lower(), self._pattern):
                yield record

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
            f" where ({condition}){self._in_range('t.bucket')}{self._of_models('t.model_string_id')}"
            " group by 1, 2"
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
            f"{self._of_models('m.model_string_id')}"
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

    def _of_models(self, column: str) -> str:
        """Return a condition on a model that starts with "and", or nothing for all models."""
        return f" and {column} in ({self._models})" if self._models is not None else ""


def _select_models(db: sqlite3.Connection, pattern: str) -> str:
    """Return the ids of the models that match, separated by commas."""
    rows = db.execute(
        "select id, text from string where id in (select model_string_id from response)"
        " or id in (select model_string_id from tool_rollup)"
    )
    return ", ".join(str(id_) for id_, text in rows if matches_pattern(text.lower(), pattern))


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


def _is_in_range(at: int | None, first_bucket: int | None, end_bucket: int | None) -> bool:
    """Return whether a time in milliseconds is in a range of buckets. A time that is unknown is in none."""
    if first_bucket is None and end_bucket is None:
        return True
    bucket = at // BUCKET_MS if at is not None else UNDATED_BUCKET
    return (
        bucket != UNDATED_BUCKET
        and (first_bucket is None or bucket >= first_bucket)
        and (end_bucket is None or bucket < end_bucket)
    )


class _Fragment(NamedTuple):
    external_id: str
    platform: str
    parent_external_id: str | None
    is_subagent: bool
    id: int
    store: str
    message_count: int

    @property
    def rank(self) -> tuple[bool, int]:
        """Sort key for stores: the same order as in `derive.fragments`."""
        return not self.message_count, store_rank(self.store)


def _select_fragments(
    db: sqlite3.Connection, filter_: Filter, only: SessionKey | None = None
) -> dict[int, SelectedSession]:
    """Return the matching sessions, or one of them, by id. Write their fragments to ``temp.selected``.

    These are the same fragments that the totals of a session are computed from: see `derive.fragments`
    and `derive.session_rows`. Fragments with the same ``group_id`` can repeat each other's messages.
    """
    condition, parameters = where_clause(db, filter_, with_subagent_times=True)
    if only is not None:
        condition += " and external_id = :only and platform = :platform"
        parameters |= {"only": only.id, "platform": only.platform}
    rows = db.execute(
        f"select number, external_id, platform, source, {_WORKSPACE}, title, first_message_preview,"  # noqa: S608
        f" {_HAS_TOKENS}, message_count, workspace_hash, updated_at from conversations where {condition}",
        parameters,
    ).fetchall()
    # Windows paths that differ only in case are one workspace, named by its newest session.
    names = {row[-2]: row[4] for row in sorted(rows, key=lambda row: row[-1] or "")}
    sessions: dict[int, SelectedSession] = {}
    ids: dict[tuple[str, str], int] = {}
    for id_, external_id, platform, source, _, *values, workspace_hash, _ in rows:
        ref = f"{source}:{external_id}"
        sessions[id_] = SelectedSession(id_, ref, source, names[workspace_hash], *values)
        ids[external_id, platform] = id_
    groups: dict[tuple[int, str | None], list[_Fragment]] = {}
    for fragment in map(_Fragment._make, db.execute(_FRAGMENTS)):
        agent_id, session_external_id = None, fragment.external_id
        if fragment.is_subagent and fragment.parent_external_id is not None:
            agent_id, session_external_id = fragment.external_id, fragment.parent_external_id
        session_id = ids.get((session_external_id, fragment.platform))
        if session_id is not None:
            groups.setdefault((session_id, agent_id), []).append(fragment)
    selected: list[tuple[int, int, bool, int | None]] = []
    for index, ((session_id, agent_id), fragments) in enumerate(groups.items()):
        best = min(fragments, key=lambda fragment: fragment.rank)
        # Token counts from hooks have rollups only if no other fragment has token counts.
        counted_stores = best.store, HOOK_USAGE.name
        same_store = [fragment.id for fragment in fragments if fragment.store in counted_stores]
        group_id = index if len(same_store) > 1 else None
        selected += [(id_, session_id, agent_id is None, group_id) for id_ in same_store]
    db.execute(
        "create temp table if not exists selected"
        " (fragment_id integer primary key, session_id integer, is_own integer, group_id integer)"
    )
    db.execute("delete from selected")
    db.executemany("insert into selected values (?, ?, ?, ?)", sorted(selected))
    return sessions


class _UsageFragment(NamedTuple):
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


def _usage_records(
    db: sqlite3.Connection,
    sessions: dict[int, SelectedSession],
    first_bucket: int | None,
    end_bucket: int | None,
) -> Iterator[UsageRecord]:
    """Return the usage records of the fragments in ``temp.selected``, all or within a range of buckets.

    A counted response has the largest counts of all its records. They are listed with its first record.
    """
    for fragment in _usage_fragments(db, sessions):
        responses = [
            response
            for response in map(_Response._make, db.execute(_RESPONSES, [fragment.id]).fetchall())
            if _is_in_range(response.at, first_bucket, end_bucket)
        ]
        if not responses:
            continue
        records = _records_by_response(db, fragment.id)
        for response in responses:
            yield from _explain(db, fragment, response, records.get(response.response_hash, []))


def _usage_fragments(db: sqlite3.Connection, sessions: dict[int, SelectedSession]) -> list[_UsageFragment]:
    """Return all fragments of the sessions, selected or not. Those of subagents have an agent id."""
    is_counted = "exists (select 1 from token_rollup t where t.fragment_id = s.fragment_id)"
    rows = db.execute(
        "select s.fragment_id, c.number,"  # noqa: S608 - constants
        " iif(s.is_subagent and s.external_id <> s.session_external_id, s.external_id, null),"
        " exists (select 1 from temp.selected t where t.fragment_id = s.fragment_id)"
        f"  and (f.store <> '{HOOK_USAGE.name}' or {is_counted}), {is_counted}"
        " from fragment_session s join fragment f on f.id = s.fragment_id"
        " join conversations c on c.external_id = s.session_external_id and c.platform = s.platform"
        " where c.number in (select session_id from temp.selected)"
        " order by c.started_at, c.number, s.is_subagent, s.fragment_id"
    ).fetchall()
    return [
        _UsageFragment(id_, sessions[session_id], agent_id, bool(is_selected), bool(is_counted))
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
    db: sqlite3.Connection, fragment: _UsageFragment, response: _Response, records: list[_Record]
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
            tokens=_tokens_of(usage),
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


def _verdict(
    db: sqlite3.Connection, fragment: _UsageFragment, response: _Response
) -> tuple[UsageVerdict, str]:
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


def _tokens_of(usage: TokenUsage) -> Tokens:
    cache_write_1h = usage.cache_creation_1h_input_tokens or 0
    return Tokens(
        input=usage.input_tokens or 0,
        output=usage.output_tokens or 0,
        cache_write=(usage.cache_creation_input_tokens or 0) - cache_write_1h,
        cache_write_1h=cache_write_1h,
        cache_read=usage.cache_read_input_tokens or 0,
    )
