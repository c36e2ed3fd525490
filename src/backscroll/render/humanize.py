"""Short forms of ages, counts, costs, durations, percentages, ids and hashes."""

from datetime import datetime
from typing import TYPE_CHECKING

from backscroll.model.text import sanitize

if TYPE_CHECKING:
    from backscroll.model.statistics import Sums

SUBAGENT_MARK = "⤷ "  # before the title
_SHA_CHARS = 9
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_AGE_UNITS = (("y", 31_557_600), ("mo", 2_629_800), ("w", 604_800), ("d", 86_400), ("h", 3600), ("min", 60))


def format_age(at: datetime | None, now: datetime) -> str:
    """Return how long ago a time was: ``3 h ago``."""
    if at is None:
        return "unknown"
    seconds = (now - at).total_seconds()
    for unit, size in _AGE_UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def compact_number(number: int) -> str:
    """Return a number in at most four characters: ``950``, ``1.2k``, ``110k``, ``3.4M``."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 1000)):
        # A number that rounds up to 1000 of a unit is shown in the next unit.
        if number >= size * 0.9995:
            scaled = number / size
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return str(number)


def compact_count(count: int, noun: str) -> str:
    """Return a short count with its noun: ``1 token``, ``1.2k messages``."""
    return f"{compact_number(count)} {noun}{'' if count == 1 else 's'}"


def format_size(size: int) -> str:
    """Return a number of bytes as megabytes: ``12.3 MB``."""
    return f"{size / 1e6:,.1f} MB"


def format_usd(usd: float) -> str:
    """Return dollars and cents; ``<$0.01`` for a smaller amount that is not zero."""
    return f"${usd:,.2f}" if usd >= 0.005 or usd == 0 else "<$0.01"


def format_cost(row: "Sums") -> str:
    """Return the cost of a row: ``≥`` if some of its models have no price, ``?`` if none has."""
    if row.cost_usd is None:
        return "?" if row.unpriced_tokens else ""
    return ("≥" if row.unpriced_tokens else "") + format_usd(row.cost_usd)


def format_duration(seconds: float) -> str:
    """Return hours and minutes, or seconds below a minute."""
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{minutes // 60:,} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60:,} h"
    return f"{minutes} min" if minutes else f"{round(seconds)} s"


def format_remaining(seconds: float) -> str:
    """Return an estimate of the remaining time: ``about 35 s``, ``about 3 min``."""
    return f"about {max(5, 5 * round(seconds / 5))} s" if seconds < 90 else f"about {round(seconds / 60)} min"


def format_percent(share: float) -> str:
    """Return a percentage. Only exact values are shown as 0 % and 100 %."""
    text = f"{share * 100:.1f}" if share < 0.1 else f"{share * 100:.0f}"
    if text == "100" and share < 1:
        text = ">99"
    if text == "0.0" and share > 0:
        text = "<0.1"
    return f"{text.removesuffix('.0')} %"


def short_id(id_: str, parent_ref: str | None = None) -> str:
    """Return the first 8 characters of a hexadecimal id. Any other id stays whole: its start is not unique.

    Some ids of subagents start with the id of their session. They are shortened to ``SESSION/REST``.
    """
    parent_id = (parent_ref or "").partition(":")[2]
    if parent_id and id_.startswith(f"{parent_id}-"):
        return sanitize(f"{parent_id[:8]}/{id_.removeprefix(f'{parent_id}-')}")
    return sanitize(id_[:8] if set(id_[:8]) <= _HEX_DIGITS else id_)


def short_ref(ref: str) -> str:
    """Return a ref with a short id."""
    source, _, id_ = ref.partition(":")
    return f"{source}:{short_id(id_)}"


def short_sha(sha: str) -> str:
    """Return the start of a commit's hash."""
    return sha[:_SHA_CHARS]
