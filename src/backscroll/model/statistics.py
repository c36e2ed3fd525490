"""Statistics: counts, tokens, costs."""

from datetime import date, datetime
from typing import Literal

from msgspec import Struct

from backscroll.model.message import Origin

# Prompt sizes in tokens above which providers charge more. Usage is aggregated by these steps.
PROMPT_SIZES = (32_000, 64_000, 100_000, 128_000, 200_000, 256_000, 272_000, 500_000)

By = Literal["day", "week", "month", "source", "workspace", "model", "tool"]


class Tokens(Struct, frozen=True, kw_only=True):
    """Tokens by price category."""

    input: int = 0
    output: int = 0
    cache_write: int = 0  # cached for five minutes
    cache_write_1h: int = 0  # cached for an hour
    cache_read: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_write + self.cache_write_1h + self.cache_read

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_write=self.cache_write + other.cache_write,
            cache_write_1h=self.cache_write_1h + other.cache_write_1h,
            cache_read=self.cache_read + other.cache_read,
        )


class Consumption(Struct, frozen=True, kw_only=True):
    """Usage of responses with the same price."""

    model: str | None
    speed: str | None = None  # a price class other than the standard one
    at: datetime | None = None  # any time within a period of constant prices; None if unknown
    prompt: int = 0  # size in tokens, within one of PROMPT_SIZES
    responses: int = 1
    tokens: Tokens
    reported_usd: float | None = None  # as reported by the tool
    is_at_least: bool = False  # some responses were counted before they were finished


class Sums(Struct, frozen=True, kw_only=True):
    """Values of one row: total, day, workspace, model …"""

    key: str | None  # day, source …; None if unknown, and for the total
    sessions: int = 0
    prompts: int | None = 0  # None if not available for this grouping, as by model
    messages: int | None = 0
    subagent_messages: int | None = 0
    active_seconds: float | None = 0.0
    responses: int = 0
    tokens: Tokens | None = None  # None if no tool reported any
    cost_usd: float | None = None  # of usage with a known price; None if there is none
    unpriced_tokens: int = 0
    reported_usd: float | None = None  # as reported by the tools
    is_at_least: bool = False
    lines_added: int | None = 0
    lines_removed: int | None = 0
    edits_decided: int | None = 0
    edits_accepted: int | None = 0
    tool_calls: int | None = 0
    tool_failures: int | None = 0

    @property
    def acceptance_rate(self) -> float | None:
        """Return the share of accepted edits; None if none was decided."""
        return (self.edits_accepted or 0) / self.edits_decided if self.edits_decided else None


class Unpriced(Struct, frozen=True, kw_only=True):
    """Tokens of a model without a known price, excluded from the cost."""

    model: str | None  # None if unknown
    speed: str | None
    responses: int
    tokens: int


class Reported(Struct, frozen=True, kw_only=True):
    """Cost that the tools report, and the computed cost of the same sessions."""

    sessions: int  # with a reported cost
    usd: float
    tokens: int | None  # in the totals of sessions; None if only costs are reported
    computed_usd: float | None  # None if no price is known

    @property
    def difference_usd(self) -> float | None:
        """Return how much more the tools report; negative if less."""
        return self.usd - self.computed_usd if self.computed_usd is not None else None


class Report(Struct, frozen=True, kw_only=True):
    """Statistics: the total and its parts."""

    by: By | None
    total: Sums
    rows: tuple[Sums, ...]
    unpriced: tuple[Unpriced, ...]
    prices_checked: date  # date of the price table
    zone: str  # time zone of the days
    since: datetime | None
    until: datetime | None
    timeline: tuple[tuple[str, int], ...]  # messages by day, week or month, limited to the width of a line
    undated_messages: int  # included in the counts
    repeated_messages: (
        int | None
    )  # copies in resumed and forked sessions, not counted; None with a time range
    repeated_subagent_messages: int | None  # the same, of subagents
    uncounted_sessions: int  # sessions without token counts
    priced_prompts: int = 0  # of the sessions with a cost
    reported: Reported | None = None  # None if no tool reports a cost


# Whether a usage record is counted, or why not.
UsageVerdict = Literal[
    "counted",
    "stream duplicate",  # another record of the same response
    "replay",  # repeated by a resumed session
    "fork prefix",  # repeated by a forked session
    "subagent copy",  # in the session and in its subagent
    "other account",  # the content of the session comes from a better store
    "discarded",  # of an attempt whose result the tool discarded
]


class UsageRecord(Struct, frozen=True, kw_only=True):
    """A record with the usage of a response, and whether it is counted."""

    session_ref: str
    agent_id: str | None  # of a subagent with its own file
    response_id: str | None
    origin: Origin | None  # None for a record without a message
    at: datetime | None
    model: str | None
    speed: str | None
    tokens: Tokens
    reported_usd: float | None
    is_at_least: bool
    fate: UsageVerdict
    reason: str


class Charge(Struct, frozen=True, kw_only=True):
    """Cost calculation of usage with the same price."""

    model: str | None
    speed: str | None
    is_long: bool  # the prompts exceed the size above which the model costs more
    responses: int
    tokens: Tokens
    lines: tuple[
        tuple[str, int, float, float], ...
    ]  # category, tokens, dollars per million, dollars; () without a price
    usd: float | None


class Explanation(Struct, frozen=True, kw_only=True):
    """How the tokens and the cost of a session or a day are calculated."""

    what: str
    records: tuple[UsageRecord, ...]
    charges: tuple[Charge, ...]
    tokens: Tokens
    usd: float | None
    prices_checked: date
    zone: str
    reported: Reported | None = None  # None if no tool reports a cost


SeriesGroup = Literal["source", "workspace", "model"]


class Series(Struct, frozen=True, kw_only=True):
    """Sums by period and group."""

    by: SeriesGroup
    groups: tuple[str, ...]  # the largest first
    sums: dict[tuple[str, str | None], Sums]  # by period and group; the group None is all others


class Breakdown(Struct, frozen=True, kw_only=True):
    """Several reports of the same sessions."""

    reports: dict[By, Report]
    series: dict[SeriesGroup, Series]
    hours: tuple[tuple[int, ...], ...]  # messages of 24 hours for each of the seven days from Monday
    files: tuple["MostEdited", ...]


class MonthGrowth(Struct, frozen=True):
    """Sessions that started in a month, with their messages and originals."""

    month: str | None  # 2026-11; None for originals of no session
    sessions: int
    messages: int
    original_bytes: int  # not compressed


class Favorite(Struct, frozen=True):
    """A name and its count."""

    name: str
    count: int


class LongestSession(Struct, frozen=True):
    """The session with the longest active time."""

    ref: str
    title: str | None
    workspace_path: str | None
    active_seconds: float
    messages: int


class Streak(Struct, frozen=True):
    """Consecutive days with messages."""

    first: date
    last: date
    days: int


class MostEdited(Struct, frozen=True):
    """A file with the number of its edits and changed lines."""

    path: str
    edits: int
    added: int
    removed: int


class Year(Struct, frozen=True, kw_only=True):
    """Statistics of a year."""

    year: int
    zone: str  # time zone of days and hours
    total: Sums
    months: tuple[Sums, ...]  # all twelve
    hours: tuple[int, ...]  # messages by hour of the day, from 0
    weekdays: tuple[int, ...]  # messages by day of the week, from Monday
    active_days: int
    busiest_day: tuple[date, int] | None  # with its message count
    streak: Streak | None  # the longest
    longest_session: LongestSession | None
    projects: tuple[Sums, ...]  # workspaces with the most activity
    files: tuple[MostEdited, ...]
    tools: tuple[Favorite, ...]  # by calls
    models: tuple[Favorite, ...]  # by messages
    topics: tuple[
        Favorite, ...
    ]  # words and pairs of words, by sessions with them in the title or first prompt
    prices_checked: date
    uncounted_sessions: int = 0  # sessions without token counts
