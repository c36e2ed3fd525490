"""Which sessions are wanted, as a value and as SQL."""

import sqlite3
from datetime import UTC, datetime
from typing import Any

import msgspec

from backscroll.archive.query.wildcards import as_glob, as_like, fits
from backscroll.archive.query.workspaces import workspace_hashes
from backscroll.model import Filter

__all__ = ["condition", "numbers"]

_OF_ANY = "({0} or (external_id, platform) in (select parent_external_id, platform from subagent where {0}))"


def condition(
    db: sqlite3.Connection, wanted: Filter, *, with_subagents_times: bool = False
) -> tuple[str, dict[str, Any]]:
    """A filter as SQL over conversations, with its values.

    With its subagents' times, a session is as old and as young as they are: one may go on in the background
    after the last word of the session.

    Raises `WorkspaceNotFoundError` when the end of a path fits several workspaces.
    """
    parts: list[str] = []
    values: dict[str, Any] = {}
    at = _OF_ANY if with_subagents_times else "{}"
    if not wanted.with_unlisted:
        parts.append("visibility in ('listed', 'archived')")
    if wanted.source is not None:
        parts.append("source = :source")
        values["source"] = wanted.source
    if wanted.workspace is not None:
        parts.append("workspace_hash in (select value from json_each(:workspaces))")
        values["workspaces"] = msgspec.json.encode(workspace_hashes(db, wanted.workspace)).decode()
    if wanted.since is not None:
        parts.append(at.format("updated_at >= :since"))
        values["since"] = _spelled(wanted.since)
    if wanted.until is not None:
        parts.append(at.format("started_at < :until"))
        values["until"] = _spelled(wanted.until)
    if wanted.branch is not None:
        parts.append("git_branch in (select value from json_each(:branches))")
        values["branches"] = msgspec.json.encode(_branches(db, wanted.branch)).decode()
    if wanted.model is not None:
        parts.append(r"exists (select 1 from json_each(models) where value like :model escape '\')")
        values["model"] = as_like(wanted.model if "*" in wanted.model else f"*{wanted.model}*")
    if wanted.has_edits:
        parts.append("total_changes > 0")
    if wanted.is_gone is not None:
        parts.append("is_gone = :gone")
        values["gone"] = wanted.is_gone
    for place, name in enumerate(wanted.tags):
        like = "glob" if "*" in name else "="
        parts.append(
            f"(external_id, platform) in (select external_id, platform from tag where name {like}"  # noqa: S608
            f" :tag{place})"
        )
        values[f"tag{place}"] = as_glob(name) if "*" in name else name
    if wanted.is_starred:
        parts.append("(external_id, platform) in (select external_id, platform from star)")
    return " and ".join(parts) or "1", values


def numbers(db: sqlite3.Connection, wanted: Filter) -> tuple[set[int], set[int]]:
    """The numbers of the sessions that pass and of the subagents they started, and those of all others."""
    passing, values = condition(db, wanted)
    rows = db.execute(
        f"select number from conversations where {passing} union all select s.id from subagent s"  # noqa: S608
        " join conversations c on c.external_id = s.parent_external_id and c.platform = s.platform"
        f" where c.number in (select number from conversations where {passing})",
        values,
    )
    found = {number for (number,) in rows}
    every = db.execute("select number from conversations union all select id from subagent")
    return found, {number for (number,) in every} - found


def _branches(db: sqlite3.Connection, called: str) -> list[str]:
    """The branches that are called so; SQLite itself knows the small letters of ASCII alone."""
    called.encode()  # refuses what is no text, as SQLite does wherever it is asked
    rows = db.execute("select distinct git_branch from conversations where git_branch is not null")
    return [branch for (branch,) in rows if fits(branch.lower(), called.lower())]


def _spelled(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
