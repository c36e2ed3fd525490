"""A year in one page."""

from datetime import date

from msgspec import Struct

from backscroll.model.statistics import Sums

__all__ = ["Favourite", "LongestSession", "MostEdited", "Streak", "Year"]


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
