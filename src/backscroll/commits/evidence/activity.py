"""Time between the activity of a session and a commit."""

from bisect import bisect_right

from backscroll.commits.evidence.content import SLACK_MS
from backscroll.commits.score import time_strength
from backscroll.commits.sessions import SessionWork
from backscroll.git import Commit

__all__ = ["idle_time"]


def idle_time(session: SessionWork, commit: Commit, window_start: int) -> tuple[float, float] | None:
    """Return the seconds between the last activity and a commit, and the strength. None if it came later."""
    until = commit.authored_at * 1000 + SLACK_MS
    position = bisect_right(session.activity, (until, 1 << 60)) - 1
    if position < 0:
        return None
    last = min(until, max(end for _, end in session.activity[max(0, position - 20) : position + 1]))
    idle = max(0.0, commit.authored_at - last / 1000)
    return idle, time_strength(idle, is_in_window=last >= window_start * 1000)
