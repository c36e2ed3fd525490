"""What sessions add up to: counts, tokens, costs."""

from datetime import date, datetime
from typing import Literal

from msgspec import Struct

from backscroll.model.message import Origin

__all__ = [
    "PROMPT_SIZES",
    "By",
    "Charge",
    "Consumption",
    "Explanation",
    "Favourite",
    "LongestSession",
    "MostEdited",
    "Report",
    "Streak",
    "Sums",
    "Tokens",
    "Unpriced",
    "UsageRecord",
    "UsageVerdict",
    "Year",
]

# Tokens of a prompt above which makers charge more, or may come to; what is spent is kept apart by them.
PROMPT_SIZES = (32_000, 64_000, 100_000, 128_000, 200_000, 256_000, 272_000, 500_000)

By = Literal["day", "week", "month", "source", "workspace", "model", "tool"]


class Tokens(Struct, frozen=True, kw_only=True):
    """Tokens by what they are charged as."""

    input: int = 0
    output: int = 0
    cache_write: int = 0  # kept for five minutes
    cache_write_1h: int = 0  # kept for an hour
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
    """What responses took that are charged alike."""

    model: str | None
    speed: str | None = None  # a price class other than the standard one
    at: datetime | None = None  # any moment within which prices did not change; None when nobody knows
    prompt: int = 0  # tokens of a prompt within the same price step
    responses: int = 1
    tokens: Tokens
    reported_usd: float | None = None  # what the tool itself said they cost
    is_at_least: bool = False  # some were counted before they had ended


class Sums(Struct, frozen=True, kw_only=True):
    """The figures of one row: everything, a day, a workspace, a model …"""

    key: str | None  # the day, the source …; None where that is not known, and for the sum of everything
    sessions: int = 0
    prompts: int | None = 0  # None where they cannot be told apart so, as by model
    messages: int | None = 0
    subagent_messages: int | None = 0
    active_seconds: float | None = 0.0
    responses: int = 0
    tokens: Tokens | None = None  # None when nobody counted
    cost_usd: float | None = None  # of what has a price; None when nothing has
    unpriced_tokens: int = 0
    reported_usd: float | None = None  # what the tools themselves said, beside it
    is_at_least: bool = False
    lines_added: int | None = 0
    lines_removed: int | None = 0
    edits_decided: int | None = 0
    edits_accepted: int | None = 0
    tool_calls: int | None = 0
    tool_failures: int | None = 0

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted of decided edits; None when none was decided."""
        return (self.edits_accepted or 0) / self.edits_decided if self.edits_decided else None


class Unpriced(Struct, frozen=True, kw_only=True):
    """Tokens of a model that the price table does not know; they are in no cost."""

    model: str | None  # None when the tool did not say which
    speed: str | None
    responses: int
    tokens: int


class Report(Struct, frozen=True, kw_only=True):
    """Figures: the sum of everything, and its parts where they were asked for."""

    by: By | None
    total: Sums
    rows: tuple[Sums, ...]
    unpriced: tuple[Unpriced, ...]
    prices_checked: date  # of which day the prices are
    zone: str  # whose days these are
    since: datetime | None
    until: datetime | None
    timeline: tuple[tuple[str, int], ...]  # messages by day, week or month: as many as fit a line
    undated_messages: int  # among those counted
    uncounted_sessions: int  # of which nobody said how many tokens they took


# What became of a usage record: it counts, or why it does not.
UsageVerdict = Literal[
    "counted",
    "stream duplicate",  # another record of the same response
    "replay",  # a resumed session repeats it
    "fork prefix",  # a forked session repeats it
    "subagent copy",  # the session and its subagent both have it
    "other account",  # the session is told by a better store
]


class UsageRecord(Struct, frozen=True, kw_only=True):
    """A record that says what a response took, and what became of it in the figures."""

    session_ref: str
    agent_id: str | None  # of a subagent with a file of its own
    response_id: str | None
    origin: Origin | None  # None where only a record without a message said it
    at: datetime | None
    model: str | None
    speed: str | None
    tokens: Tokens
    reported_usd: float | None
    is_at_least: bool
    fate: UsageVerdict
    reason: str


class Charge(Struct, frozen=True, kw_only=True):
    """The arithmetic of what is charged alike: so many tokens of a kind, at so many dollars a million."""

    model: str | None
    speed: str | None
    is_long: bool  # the prompts were above the size from which a model costs more
    responses: int
    tokens: Tokens
    lines: tuple[
        tuple[str, int, float, float], ...
    ]  # kind, tokens, dollars a million, dollars; () without a price
    usd: float | None


class Explanation(Struct, frozen=True, kw_only=True):
    """How the tokens and the cost of a session, or of a day, come about."""

    what: str
    records: tuple[UsageRecord, ...]
    charges: tuple[Charge, ...]
    tokens: Tokens
    usd: float | None
    prices_checked: date
    zone: str


class Favourite(Struct, frozen=True):
    """Something by name, and how often."""

    name: str
    count: int


class LongestSession(Struct, frozen=True):
    """The session that was worked in for the longest time."""

    ref: str
    title: str | None
    workspace_path: str | None
    active_seconds: float
    messages: int


class Streak(Struct, frozen=True):
    """Days in a row with a message on each."""

    first: date
    last: date
    days: int


class MostEdited(Struct, frozen=True):
    """A file, how often it was edited, and by how many lines."""

    path: str
    edits: int
    added: int
    removed: int


class Year(Struct, frozen=True, kw_only=True):
    """A year in one page."""

    year: int
    zone: str  # whose days and hours these are
    total: Sums
    months: tuple[Sums, ...]  # all twelve
    hours: tuple[int, ...]  # messages by hour of the day, from 0
    weekdays: tuple[int, ...]  # messages by day of the week, from Monday
    active_days: int
    busiest_day: tuple[date, int] | None  # with its messages
    streak: Streak | None  # the longest
    longest_session: LongestSession | None
    projects: tuple[Sums, ...]  # the busiest workspaces
    files: tuple[MostEdited, ...]
    tools: tuple[Favourite, ...]  # by calls
    models: tuple[Favourite, ...]  # by messages
    topics: tuple[
        Favourite, ...
    ]  # words and pairs of words, by sessions whose title or first prompt has them
    prices_checked: date
