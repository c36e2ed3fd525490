"""Sums with an explanation, and facts of the calendar."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from backscroll.model.statistics import Report, Sums
from backscroll.model.text import pluralize
from backscroll.render.terminal.humanize import (
    compact_number,
    format_cost,
    format_duration,
    format_percent,
    format_usd,
)

__all__ = ["Card", "calendar_facts", "cards"]

_MANY_HOURS = 100


class Card(NamedTuple):
    """A sum with an explanation."""

    label: str
    value: str
    note: str
    title: str = ""


def cards(report: Report) -> list[Card]:
    """Return the sums of a report. Those without a value are left out."""
    total = report.total
    active_days = sum(1 for row in report.rows if row.key and row.messages)
    periods = f"in {pluralize(active_days, str(report.by))}"
    prompts, messages = total.prompts or 0, total.messages or 0
    tokens = total.tokens
    cached = tokens.cache_read / tokens.total if tokens is not None and tokens.total else None
    found = [
        Card("Sessions", f"{total.sessions:,}", periods),
        Card("Prompts", f"{prompts:,}", _ratio(prompts, total.sessions, "per session")),
        Card("Messages", f"{messages:,}", _ratio(messages, prompts, "per prompt")),
        Card(
            "Active time",
            _hours(total.active_seconds or 0),
            _per_session(total),
            format_duration(total.active_seconds or 0),
        ),
        Card(
            "Tokens",
            f"{'≥ ' if total.is_at_least else ''}{compact_number(tokens.total)}"
            if tokens is not None
            else "",
            f"{format_percent(cached)} from the cache" if cached is not None else "",
            _token_title(total),
        ),
        Card(
            "Cost",
            format_cost(total),
            f"{format_usd(total.cost_usd / prompts)} per prompt" if total.cost_usd and prompts else "",
            f"At the prices of {report.prices_checked}",
        ),
        Card(
            "Changed lines",
            f"{(total.lines_added or 0) + (total.lines_removed or 0):,}"
            if total.lines_added or total.lines_removed
            else "",
            f"+{total.lines_added or 0:,} −{total.lines_removed or 0:,}",
        ),
        Card(
            "Edits accepted",
            format_percent(total.acceptance_rate) if total.acceptance_rate is not None else "",
            f"of {total.edits_decided or 0:,}",
        ),
    ]
    return [card for card in found if card.value]


def calendar_facts(days: Mapping[date, int], today: date) -> Iterator[tuple[str, str]]:
    """Yield label and value of what the calendar shows."""
    active = sorted(day for day, count in days.items() if count)
    if not active:
        return
    yield "Active days", f"{len(active):,}"
    busiest = max(active, key=lambda day: (days[day], day))
    yield "Busiest day", f"{busiest.day} {busiest:%b %Y}, {pluralize(days[busiest], 'message')}"
    streaks: list[list[date]] = []
    for day in active:
        if streaks and streaks[-1][-1] + timedelta(days=1) == day:
            streaks[-1].append(day)
        else:
            streaks.append([day])
    longest = max(streaks, key=lambda streak: (len(streak), streak[0]))
    yield "Longest streak", f"{pluralize(len(longest), 'day')}, from {longest[0].day} {longest[0]:%b %Y}"
    if streaks[-1][-1] >= today - timedelta(days=1):
        yield "Current streak", pluralize(len(streaks[-1]), "day")


def _hours(seconds: float) -> str:
    """Return a duration, without minutes if it is long."""
    hours = seconds / 3600
    return f"{hours:,.0f} h" if hours >= _MANY_HOURS else format_duration(seconds)


def _ratio(count: int, base: int, what: str) -> str:
    return f"{count / base:,.1f} {what}" if base else ""


def _per_session(total: Sums) -> str:
    if not total.sessions or not total.active_seconds:
        return ""
    return f"{format_duration(total.active_seconds / total.sessions)} per session"


def _token_title(total: Sums) -> str:
    tokens = total.tokens
    if tokens is None:
        return ""
    return (
        f"{tokens.total:,}: {tokens.input:,} input, {tokens.output:,} output,"
        f" {tokens.cache_write + tokens.cache_write_1h:,} cache write, {tokens.cache_read:,} cache read"
    )
