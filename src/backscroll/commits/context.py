"""Sessions that were open in the repository at the time of a commit. They are no evidence for it."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta

from backscroll.archive.archive import Archive
from backscroll.archive.storage.codec import to_milliseconds
from backscroll.commits.checkouts import CheckoutIndex, Relation
from backscroll.commits.commit_graph import window_start
from backscroll.commits.content import SLACK_MS
from backscroll.commits.scan import SessionWork, active_sessions, update_scans
from backscroll.git.log import Commit
from backscroll.git.repository import Repository
from backscroll.model.commit import OpenSession


def find_open_sessions(
    archive: Archive,
    repository: Repository,
    commits: Iterable[Commit],
    known: Mapping[str, Commit],
    minutes: int,
    *,
    without: Collection[str] = (),
) -> dict[str, tuple[OpenSession, ...]]:
    """Return the sessions with messages in the window before each commit, by hash, in the order of time.

    The window starts at the parent commit, at most ``minutes`` before the commit. Sessions belong to the
    repository, one of its worktrees or another clone, and need not have changed a file. ``known`` are all
    commits, ``without`` the ids of sessions to omit.
    """
    windows = {commit.sha: commit_window(commit, known, minutes) for commit in commits}
    if not windows or not minutes:
        return dict.fromkeys(windows, ())
    update_scans(archive)
    sessions = active_sessions(
        archive,
        min(_at(start) for start, _ in windows.values()) - timedelta(seconds=1),
        max(_at(end) for _, end in windows.values()) + timedelta(seconds=1),
    )
    checkouts = CheckoutIndex(archive, repository)
    found: dict[str, tuple[OpenSession, ...]] = {}
    for sha, (start, end) in windows.items():
        opened = [
            session
            for session in sessions
            if session.id not in without
            and any(first <= end and start <= last for first, last in session.activity)
            and checkouts.of_session(session) is Relation.SAME
        ]
        placed = [(session, _positions(archive, session, start, end)) for session in opened]
        found[sha] = tuple(
            OpenSession(session.ref, session.id, *positions)
            for session, positions in placed
            if positions is not None
        )
    return found


def commit_window(commit: Commit, known: Mapping[str, Commit], minutes: int) -> tuple[int, int]:
    """Return start and end of the window before a commit, in milliseconds."""
    parent = known.get(commit.parents[0]) if commit.parents else None
    start = window_start(commit.authored_at, parent.authored_at if parent is not None else None)
    return max(start, commit.authored_at - 60 * minutes) * 1000, commit.authored_at * 1000 + SLACK_MS


def _at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _positions(archive: Archive, session: SessionWork, start: int, end: int) -> tuple[int, int] | None:
    """Return the positions of the first and the last message in a window, None if there is none."""
    summary = archive.sessions.by_ids([session.number]).get(session.number)
    if summary is None:
        return None  # erased by another process in the meantime
    single = archive.messages.single_fragment(summary)
    if single is not None:
        times: Iterable[tuple[int, int | None]] = archive.edit_scans.message_times(single[0])
    else:
        messages = archive.messages.without_usage(summary)
        times = ((place, to_milliseconds(message.timestamp)) for place, message in enumerate(messages))
    inside = [place for place, at in times if at is not None and start <= at <= end]
    return (inside[0], inside[-1]) if inside else None
