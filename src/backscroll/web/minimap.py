"""Minimap of a long session: the whole session as a narrow column of links.

It is read from counts, without the messages, so that its cost hardly depends on the length of the session.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import sqrt

from msgspec import Struct

from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.model.session import Stretch
from backscroll.model.text import pluralize
from backscroll.render.session_header import format_time
from backscroll.web.urls import session_url

__all__ = ["Minimap", "MinimapRow", "read_minimap"]

MIN_MESSAGES = 50  # shorter sessions have no minimap
MAX_ROWS = 160
HEIGHT = 1000.0
_CALL_WIDTH = 13.0
_EDIT_WIDTH = 6.0
_MIN_BAR_WIDTH = 2.5


class MinimapRow(Struct, frozen=True, kw_only=True):
    """A link to a stretch of a session, with the lengths of its bars."""

    y: float
    height: float
    stretch: Stretch
    position: int  # of the message that the link leads to
    url: str
    label: str
    call_width: float
    edit_width: float
    has_match: bool


class Minimap(Struct, frozen=True):
    """The rows of a minimap, and the range of the messages that the page shows."""

    total: int
    rows: tuple[MinimapRow, ...]
    start: int
    end: int

    @property
    def view(self) -> tuple[float, float]:
        """Top and height of the shown range."""
        return self.start / self.total * HEIGHT, (self.end - self.start) / self.total * HEIGHT

    def is_current(self, row: MinimapRow) -> bool:
        """Return whether the shown range starts in this row."""
        return row.stretch.start <= min(self.start, self.total - 1) < row.stretch.end


def read_minimap(
    history: History,
    summary: SessionSummary,
    ref: str,
    *,
    shown: tuple[int, int] = (0, 0),
    matches: Sequence[int] = (),
    everything: bool = False,
) -> Minimap | None:
    """Return the minimap of a session; None if the session is short.

    ``shown`` is the range of the loaded messages. ``matches`` are the sorted positions of a search.
    """
    stretches = history.transcript.overview(summary, MAX_ROWS)
    total = stretches[-1].end if stretches else 0
    if total < MIN_MESSAGES:
        return None
    max_calls = max(one.call_count for one in stretches)
    max_lines = max(one.lines_added + one.lines_removed for one in stretches)
    rows = []
    for one in stretches:
        first_match = bisect_left(matches, one.start)
        has_match = first_match < len(matches) and matches[first_match] < one.end
        position = matches[first_match] if has_match else one.prompts[0] if one.prompts else one.start
        rows.append(
            MinimapRow(
                y=one.start / total * HEIGHT,
                height=(one.end - one.start) / total * HEIGHT,
                stretch=one,
                position=position,
                url=f"{session_url(ref, at=position, all=everything and 1)}#m{position}",
                label=_label(one),
                call_width=_bar_width(one.call_count, max_calls, _CALL_WIDTH),
                edit_width=_bar_width(one.lines_added + one.lines_removed, max_lines, _EDIT_WIDTH),
                has_match=has_match,
            )
        )
    return Minimap(total, tuple(rows), *shown)


def _bar_width(value: int, max_value: int, width: float) -> float:
    """Return the length of a bar. The square root keeps small values visible."""
    return max(_MIN_BAR_WIDTH, width * sqrt(value / max_value)) if value else 0.0


def _label(one: Stretch) -> str:
    """Return a stretch in words."""
    last = one.end - 1
    place = f"Message {one.start}" if one.start == last else f"Messages {one.start:,} to {last:,}"
    counts = [
        pluralize(count, noun)
        for count, noun in (
            (len(one.prompts), "prompt"),
            (one.call_count, "tool call"),
            (one.error_count, "error"),
        )
        if count
    ]
    if one.lines_added or one.lines_removed:
        counts.append(f"+{one.lines_added:,} −{one.lines_removed:,} lines")
    if one.has_compaction:
        counts.append("compaction")
    facts = [place, format_time(one.at, zone=None), ", ".join(counts)]
    return " · ".join(fact for fact in facts if fact)
