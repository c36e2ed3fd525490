"""Cost that the tools report, compared with the computed cost."""

from collections.abc import Callable

from backscroll.model.statistics import Reported
from backscroll.model.text import pluralize
from backscroll.render.terminal.humanize import format_usd

__all__ = ["difference_reason", "reported_line"]

_MIN_DIFFERENCE_USD = 1e-6  # less is rounding


def reported_line(reported: Reported, *, is_exact: bool = False) -> str:
    """Return the reported cost and its difference from the computed cost in one line."""
    dollars: Callable[[float], str] = "${:,.6f}".format if is_exact else format_usd
    line = f"{dollars(reported.usd)} reported by the tool for {pluralize(reported.sessions, 'session')}"
    difference = reported.difference_usd
    if difference is None:
        return line
    if abs(difference) < _MIN_DIFFERENCE_USD:
        return f"{line}, as computed"
    return f"{line}, {dollars(abs(difference))} {'more' if difference > 0 else 'less'} than computed"


def difference_reason(reported: Reported) -> str | None:
    """Return why the reported cost differs from the computed cost; None if it does not."""
    difference = reported.difference_usd
    if difference is None or abs(difference) < _MIN_DIFFERENCE_USD:
        return None
    if reported.tokens is None:
        return "The tool computed the reported cost with its prices at that time."
    if difference > 0:
        return (
            "The tool also counts requests that are not in its transcripts: compaction, retries, titles,"
            " web searches and side questions."
        )
    return "The tool does not count answers that were interrupted, or uses other prices."
