"""Commits and the sessions that led to them, as terminal text and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import msgspec

from backscroll.model import PaginatedResult, SessionSummary
from backscroll.model.code.commit import CommitDetails, CommitSummary, LinkedSession
from backscroll.model.dates import iso
from backscroll.model.text import sanitize
from backscroll.render.terminal.humanize import short_id
from backscroll.render.terminal.style import Style

__all__ = ["commit_document", "commit_lines", "commits_document", "commits_lines"]

_SHA_CHARS = 9
_PROMPT_CHARS = 200
_TITLE_CHARS = 60


def commits_document(page: PaginatedResult[CommitSummary]) -> dict[str, Any]:
    """Return a page of commits as in `commits --json`."""
    return {
        "data": [_summary_document(commit) for commit in page.data],
        "pagination": msgspec.structs.asdict(page.pagination),
    }


def commit_document(commit: CommitDetails) -> dict[str, Any]:
    """Return a commit as in `commit --json`."""
    return _summary_document(commit) | {
        "turns": [
            {"session_ref": turn.session_ref, "from": turn.first, "to": turn.last, "prompt": turn.prompt}
            for turn in commit.turns
        ]
    }


def _summary_document(commit: CommitSummary) -> dict[str, Any]:
    return {
        "sha": commit.sha,
        "parent": commit.parent,
        "author": commit.author,
        "at": iso(commit.at),
        "subject": commit.subject,
        "sessions": commit.sessions,  # encoded as they are
    }


def commits_lines(
    commits: Sequence[CommitSummary],
    titles: Mapping[str, SessionSummary],
    *,
    style: Style,
    zone: tzinfo | None = None,
) -> Iterator[str]:
    """Yield each commit in one line, followed by its sessions. ``titles`` are the sessions by ref."""
    for commit in commits:
        yield f"{_commit_head(commit, style, zone)}  {sanitize(commit.subject)}"
        for session in commit.sessions:
            kinds = ", ".join(evidence.kind for evidence in session.evidence)
            yield f"    {_session_head(session, titles, style)}  {style('dim', kinds)}"


def commit_lines(
    commit: CommitDetails,
    titles: Mapping[str, SessionSummary],
    *,
    style: Style,
    zone: tzinfo | None = None,
) -> Iterator[str]:
    """Yield a commit with its sessions, their evidence and their turns."""
    yield f"{_commit_head(commit, style, zone)}  {sanitize(commit.author)}"
    yield style("title", sanitize(commit.subject))
    if not commit.sessions:
        yield ""
        yield "No session was found for this commit."
        if commit.is_merge:
            yield "The lines of a merge are not compared. See the commits that it merges."
    for session in commit.sessions:
        yield ""
        yield _session_head(session, titles, style)
        for evidence in session.evidence:
            yield f"  {evidence.weight:.2f}  {evidence.kind:<9}  {sanitize(evidence.detail)}"
        for turn in commit.turns:
            if turn.session_ref == session.session_ref:
                place = style("dim", f"messages {turn.first} to {turn.last}")
                yield f"  {place}  {_shortened(turn.prompt or '(before the first prompt)', _PROMPT_CHARS)}"


def _commit_head(commit: CommitSummary, style: Style, zone: tzinfo | None) -> str:
    at = commit.at.astimezone(zone)
    return f"{style('accent', commit.sha[:_SHA_CHARS])}  {style('dim', f'{at:%Y-%m-%d %H:%M}')}"


def _session_head(session: LinkedSession, titles: Mapping[str, SessionSummary], style: Style) -> str:
    source = session.session_ref.partition(":")[0]
    summary = titles.get(session.session_ref)
    title = summary.title or summary.first_message_preview or "" if summary is not None else ""
    ref = f"{source}:{short_id(session.session_id)}"
    return f"{session.score:.2f}  {ref}  {_shortened(title, _TITLE_CHARS)}".rstrip()


def _shortened(text: str, max_chars: int) -> str:
    line = sanitize(" ".join(text.split()))
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"
