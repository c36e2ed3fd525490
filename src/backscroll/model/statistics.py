"""What sessions add up to: counts, tokens, costs."""

from datetime import date, datetime
from typing import Literal

from msgspec import Struct

__all__ = ["By", "Consumption", "Report", "Sums", "Tokens", "Unpriced"]

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
