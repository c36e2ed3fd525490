"""Sums of sessions: rows by time, place, model or tool, series, hours; cost of a session, and why."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from functools import cache, lru_cache, partial
from typing import NamedTuple

from msgspec.structs import replace

from backscroll.archive.derive.counts import BUCKET_MS
from backscroll.archive.query.statistics import (
    ActivityTotals,
    GroupTotals,
    PriceClass,
    Statistics,
    TokenTotals,
)
from backscroll.model.statistics import (
    By,
    Charge,
    Consumption,
    Explanation,
    Report,
    Reported,
    Series,
    SeriesGroup,
    Sums,
    Tokens,
    UsageRecord,
)
from backscroll.pricing.prices import PriceTable, bill_of, cost_of

_SPANS = ("day", "week", "month")
MAX_TIMELINE_COLUMNS = 60


def add_up(
    counted: Statistics,
    prices: PriceTable,
    *,
    by: By | None = None,
    zone: tzinfo | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Report:
    """Return the report. Days are those of the zone, or of this machine."""
    new_row = partial(_RowSums, is_of_models=counted.is_of_models)
    total = new_row()
    rows: defaultdict[str | None, _RowSums] = defaultdict(new_row)
    is_span, is_place = by in _SPANS, by in ("source", "workspace")
    has_span = since is not None or until is not None
    key = _keys(counted, by, zone)
    done = list(counted.activity())
    for one in done:
        total.add_activity(one)
        if is_span or is_place:
            rows[key(one.session_id, one.bucket)].add_activity(one)
    for spent in counted.tokens(
        prices.steps, prices.changes, by_session=is_place or by == "model", by_bucket=is_span
    ):
        total.tokens.add(spent)
        if by is None or by == "tool":
            continue
        row = rows[spent.price_class.model if by == "model" else key(spent.session_id, spent.bucket)]
        row.tokens.add(spent)
        if spent.session_id is not None:
            row.sessions.add(spent.session_id)
    for increment in counted.reported():
        total.add_reported(increment.usd)
        if by is None or by == "tool":
            continue
        bucket = increment.at // BUCKET_MS if increment.at is not None else None
        name = increment.model if by == "model" else key(increment.session_id, bucket)
        rows[name].add_reported(increment.usd)
        rows[name].sessions.add(increment.session_id)
    if by in ("tool", "model"):
        for part in counted.by_tool() if by == "tool" else counted.by_model():
            rows[part.name].add_group(part)
    if is_place and not has_span:
        for number in counted.sessions:
            rows[key(number, None)].sessions.add(number)
    held = total.sessions if has_span else counted.sessions
    sums = total.sums(prices, None, sessions=None if has_span else len(counted.sessions))
    return Report(
        by=by,
        total=sums,
        rows=_ordered([row.sums(prices, name, by) for name, row in rows.items()], by),
        unpriced=bill_of(total.tokens.consumed(), prices).unpriced,
        prices_checked=prices.checked,
        zone=zone_name(zone),
        since=since,
        until=until,
        timeline=_timeline(done, zone),
        repeated_subagent_messages=None
        if has_span or counted.is_of_models
        else counted.listed_subagent_messages() - total.subagent_messages,
        uncounted_sessions=sum(not counted.sessions[number].has_tokens for number in held),
        priced_prompts=_priced_prompts(counted, prices, done),
        undated_messages=sum(one.messages for one in done if one.bucket is None),
        repeated_messages=None
        if has_span or counted.is_of_models
        else sum(one.message_count for one in counted.sessions.values()) - sum(one.messages for one in done),
        reported=reported_cost(counted, prices) if sums.reported_usd is not None else None,
    )


def _priced_prompts(counted: Statistics, prices: PriceTable, done: Sequence[ActivityTotals]) -> int:
    """Return the number of prompts in sessions with a cost. The cost per prompt is that of these prompts."""
    priced: set[int | None] = set()
    for spent in counted.tokens(prices.steps, prices.changes, by_session=True):
        kind = spent.price_class
        if spent.session_id not in priced and kind.model and prices.find(kind.model, kind.speed, kind.at):
            priced.add(spent.session_id)
    return sum(one.prompts for one in done if one.session_id in priced)


def _keys(
    counted: Statistics, by: By | None, zone: tzinfo | None
) -> Callable[[int | None, int | None], str | None]:
    """Return a function from session and 15-minute bucket to the key of a row."""
    if by in _SPANS:
        named = period_namer(str(by), zone)
        return lambda _, quarter: named(quarter)
    places = _places(counted, by)
    return lambda session, _: places[session] if session is not None else None


def _places(counted: Statistics, by: By | SeriesGroup | None) -> dict[int, str | None]:
    """Return the source or the workspace of each session."""
    sessions = counted.sessions.items()
    return {number: one.source if by == "source" else one.workspace_path for number, one in sessions}


def _ordered(rows: Sequence[Sums], by: By | None) -> tuple[Sums, ...]:
    """Sort days by date, other rows by size. The row without a key comes last."""
    if by in _SPANS:
        return tuple(sorted(rows, key=lambda row: (row.key is None, row.key)))
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                row.key is None,
                -(row.tokens.total if row.tokens is not None else 0),
                -(row.messages or 0),
                -(row.tool_calls or 0),
                row.key or "",
            ),
        )
    )


def _timeline(done: Sequence[ActivityTotals], zone: tzinfo | None) -> tuple[tuple[str, int], ...]:
    """Return the messages by day, or by week or month if there are too many days, including empty ones."""
    buckets = [one.bucket for one in done if one.bucket is not None and one.messages]
    if not buckets:
        return ()
    first, last = min(buckets), max(buckets)
    for span in _SPANS:
        named = period_namer(span, zone)
        names = dict.fromkeys(named(at) for at in (*range(first, last, 96), last))
        if len(names) <= MAX_TIMELINE_COLUMNS or span == "month":
            break
    counts = {name: 0 for name in names if name is not None}
    for one in done:
        name = named(one.bucket)
        if name in counts:
            counts[name] += one.messages
    return tuple(counts.items())


def add_up_series(
    counted: Statistics,
    prices: PriceTable,
    *,
    period: By,
    by: SeriesGroup,
    max_groups: int,
    zone: tzinfo | None = None,
) -> Series:
    """Return the sums of the largest groups; all others are one group without a name.

    A group of sources or workspaces is large by its messages, a model by its tokens. Messages and lines have
    no model.
    """
    named = period_namer(str(period), zone)
    places = _places(counted, by) if by != "model" else {}
    sizes: Counter[str | None] = Counter()
    if by == "model":
        for spent in counted.tokens(prices.steps, prices.changes, by_session=True, by_bucket=True):
            sizes[spent.price_class.model] += sum(spent.counts[1:])
    else:
        for done in counted.activity():
            sizes[places[done.session_id]] += done.messages
    groups = tuple(name for name, size in sizes.most_common() if name is not None and size)[:max_groups]
    large = frozenset(groups)
    new_row = partial(_RowSums, is_of_models=counted.is_of_models)
    sums: defaultdict[tuple[str, str | None], _RowSums] = defaultdict(new_row)
    for done in counted.activity() if by != "model" else ():
        name, group = named(done.bucket), places[done.session_id]
        if name is not None:
            sums[name, group if group in large else None].add_activity(done)
    for spent in counted.tokens(prices.steps, prices.changes, by_session=True, by_bucket=True):
        name = named(spent.bucket)
        group = spent.price_class.model if by == "model" else places[spent.session_id or 0]
        if name is not None:
            row = sums[name, group if group in large else None]
            row.tokens.add(spent)
            if by == "model" and spent.session_id is not None:
                row.sessions.add(spent.session_id)
    return Series(by=by, groups=groups, sums={key: row.sums(prices, key[0]) for key, row in sums.items()})


def messages_by_hour(counted: Statistics, zone: tzinfo | None = None) -> tuple[tuple[int, ...], ...]:
    """Return 24 counts for each of the seven days from Monday, in a zone or in local time."""
    counts = [[0] * 24 for _ in range(7)]
    for one in counted.activity():
        if one.bucket is not None and one.messages:
            at = bucket_start(one.bucket, zone)
            counts[at.weekday()][at.hour] += one.messages
    return tuple(map(tuple, counts))


def reported_cost(counted: Statistics, prices: PriceTable) -> Reported | None:
    """Return the reported cost of all sessions that have one: totals of sessions and costs of responses.

    Totals of sessions include requests that no record contains.
    """
    increments = list(counted.reported())
    usd = sum(increment.usd for increment in increments)
    sessions = {increment.session_id for increment in increments}
    spent = list(counted.tokens(prices.steps, prices.changes, by_session=True))
    by_response = [one for one in spent if one.reported_usd is not None]
    sessions |= {one.session_id for one in by_response if one.session_id is not None}
    if not sessions:
        return None
    computed = TokenSums()
    for one in spent:
        if one.session_id in sessions:
            computed.add(one)
    return Reported(
        sessions=len(sessions),
        usd=usd + sum(one.reported_usd or 0 for one in by_response),
        tokens=sum(increment.tokens for increment in increments) or None,
        computed_usd=bill_of(computed.consumed(), prices).usd,
    )


def bucket_start(bucket: int, zone: tzinfo | None) -> datetime:
    """Return the start of a 15-minute bucket, counted from 1970, in a zone or in local time."""
    return datetime.fromtimestamp(bucket * BUCKET_MS / 1000, UTC).astimezone(zone)


@lru_cache(maxsize=8)
def period_namer(span: str, zone: tzinfo | None) -> Callable[[int | None], str | None]:
    """Return a function that names the period of a bucket: 2026-11-16, 2026-W47 or 2026-11."""
    pattern = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}[span]

    @cache
    def named(bucket: int | None) -> str | None:
        return bucket_start(bucket, zone).strftime(pattern) if bucket is not None else None

    return named


def zone_name(zone: tzinfo | None) -> str:
    """Return the name of a zone: UTC, or the local name."""
    if zone is UTC:
        return "UTC"
    return datetime.now(UTC).astimezone(zone).tzname() or "local time"


class TokenSums:
    """Sums of tokens and costs by price class."""

    def __init__(self) -> None:
        self._kinds: dict[PriceClass, list[float]] = {}

    def add(self, spent: TokenTotals) -> None:
        """Add the tokens of responses."""
        known = self._kinds.get(spent.price_class)
        if known is None:
            known = self._kinds[spent.price_class] = [0, 0, 0, 0, 0, 0, 0, 0, 0]
        for place, count in enumerate(spent.counts):
            known[place] += count
        if spent.reported_usd is not None:
            known[6] += spent.reported_usd
            known[7] = 1
        known[8] = known[8] or spent.is_at_least

    def consumed(self) -> Iterator[Consumption]:
        """Yield the consumption by price class."""
        for kind, values in self._kinds.items():
            responses, input_tokens, output, write, write_1h, read, usd, is_reported, at_least = values
            yield Consumption(
                model=kind.model,
                speed=kind.speed,
                at=kind.at,
                prompt=kind.prompt,
                responses=int(responses),
                tokens=Tokens(
                    input=int(input_tokens),
                    output=int(output),
                    cache_write=int(write),
                    cache_write_1h=int(write_1h),
                    cache_read=int(read),
                ),
                reported_usd=usd if is_reported else None,
                is_at_least=bool(at_least),
            )


class _RowSums:
    """Sums of one row. With `is_of_models`, prompts and active time are unknown."""

    def __init__(self, *, is_of_models: bool = False) -> None:
        self._is_of_models = is_of_models
        self.tokens = TokenSums()
        self.reported_usd: float | None = None
        self.sessions: set[int] = set()
        self.messages = self.subagent_messages = self.prompts = self.calls = self.failures = 0
        self.active = self.added = self.removed = self.decided = self.accepted = 0

    def add_activity(self, done: ActivityTotals) -> None:
        """Add the activity of 15 minutes."""
        self.sessions.add(done.session_id)
        self.messages += done.messages
        self.subagent_messages += done.subagent_messages
        self.prompts += done.prompts
        self.calls += done.calls
        self.failures += done.failures
        self.active += done.active_ms
        self.added += done.lines_added
        self.removed += done.lines_removed
        self.decided += done.decided
        self.accepted += done.accepted

    def add_reported(self, usd: float) -> None:
        """Add a cost that a tool reports for a session."""
        self.reported_usd = (self.reported_usd or 0) + usd

    def add_group(self, part: GroupTotals) -> None:
        """Add the activity of one tool or model."""
        self.sessions.add(part.session_id)
        self.messages += part.messages
        self.calls += part.calls
        self.failures += part.failures
        self.added += part.lines_added
        self.removed += part.lines_removed
        self.decided += part.decided
        self.accepted += part.accepted

    def sums(
        self, prices: PriceTable, key: str | None, by: By | None = None, *, sessions: int | None = None
    ) -> Sums:
        """Return the row. Fields that are unknown by tool or by model are None."""
        is_part, is_tool = by in ("tool", "model"), by == "tool"
        bill = bill_of(self.tokens.consumed(), prices)
        reported = [usd for usd in (bill.reported_usd, self.reported_usd) if usd is not None]
        return Sums(
            key=key,
            sessions=len(self.sessions) if sessions is None else sessions,
            prompts=None if is_part or self._is_of_models else self.prompts,
            messages=None if is_tool else self.messages,
            subagent_messages=None if is_part else self.subagent_messages,
            active_seconds=None if is_part or self._is_of_models else self.active / 1000,
            responses=bill.responses,
            tokens=bill.tokens,
            cost_usd=bill.usd,
            unpriced_tokens=sum(one.tokens for one in bill.unpriced),
            reported_usd=sum(reported) if reported else None,
            is_at_least=bill.is_at_least,
            lines_added=None if by == "model" else self.added,
            lines_removed=None if by == "model" else self.removed,
            edits_decided=None if by == "model" else self.decided,
            edits_accepted=None if by == "model" else self.accepted,
            tool_calls=self.calls,
            tool_failures=self.failures,
        )


class SessionCost(NamedTuple):
    """Cost of the responses of one model in one month of a session."""

    session_id: int
    model: str | None
    month: str | None
    usd: float | None  # None if the model has no price


def session_costs(
    counted: Statistics, prices: PriceTable, *, zone: tzinfo | None = None
) -> list[SessionCost]:
    """Return the costs of all counted sessions. A cost that the tool reports replaces an unknown one."""
    named = period_namer("month", zone)
    sums: defaultdict[tuple[int, str | None, str | None], TokenSums] = defaultdict(TokenSums)
    for spent in counted.tokens(prices.steps, prices.changes, by_session=True, by_bucket=True):
        assert spent.session_id is not None
        sums[spent.session_id, spent.price_class.model, named(spent.bucket)].add(spent)
    costs: list[SessionCost] = []
    for key, tokens in sums.items():
        bill = bill_of(tokens.consumed(), prices)
        costs.append(SessionCost(*key, bill.usd if bill.usd is not None else bill.reported_usd))
    return costs


def explain(counted: Statistics, prices: PriceTable, what: str, *, zone: tzinfo | None = None) -> Explanation:
    """Return every usage record, and the cost of those that count."""
    records = tuple(counted.usage_records())
    alike: dict[tuple[str | None, str | None, bool, datetime | None], Consumption] = {}
    tokens = Tokens()
    for record in records:
        if record.fate != "counted":
            continue
        tokens += record.tokens
        one = _consumption(record, prices)
        key = one.model, one.speed, _is_long(one, prices), one.at
        known = alike.get(key)
        if known is not None:
            one = replace(known, responses=known.responses + 1, tokens=known.tokens + one.tokens)
        alike[key] = one
    charges = tuple(_charge(one, is_long=is_long, prices=prices) for (_, _, is_long, _), one in alike.items())
    known_costs = [charge.usd for charge in charges if charge.usd is not None]
    return Explanation(
        what=what,
        records=records,
        charges=charges,
        tokens=tokens,
        usd=sum(known_costs) if known_costs else None,
        prices_checked=prices.checked,
        zone=zone_name(zone),
        reported=reported_cost(counted, prices),
    )


def _consumption(record: UsageRecord, prices: PriceTable) -> Consumption:
    """Return the consumption of a record, dated by the last price change before it."""
    past = [change for change in prices.changes if record.at is not None and change <= record.at]
    earliest = datetime.min.replace(tzinfo=prices.changes[0].tzinfo) if prices.changes else None
    tokens = record.tokens
    return Consumption(
        model=record.model,
        speed=record.speed,
        at=None if record.at is None else past[-1] if past else earliest,
        prompt=tokens.input + tokens.cache_write + tokens.cache_write_1h + tokens.cache_read,
        tokens=tokens,
    )


def _is_long(one: Consumption, prices: PriceTable) -> bool:
    found = prices.find(one.model, one.speed, one.at) if one.model else None
    over = found[0].long_over if found is not None else None
    return over is not None and one.prompt > over


def _charge(one: Consumption, *, is_long: bool, prices: PriceTable) -> Charge:
    cost = cost_of(one, prices)
    lines = cost.lines if cost is not None else ()
    return Charge(
        model=one.model,
        speed=one.speed,
        is_long=is_long,
        responses=one.responses,
        tokens=one.tokens,
        lines=tuple((line.kind, line.tokens, line.rate, line.usd) for line in lines if line.tokens),
        usd=cost.usd if cost is not None else None,
    )
