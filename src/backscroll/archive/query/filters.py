"""Filters for sessions as SQL."""

import sqlite3
from typing import Any

import msgspec

from backscroll.archive.query.workspaces import glob_pattern, like_pattern, matches_pattern, workspace_hashes
from backscroll.model.dates import iso
from backscroll.model.session import Filter

_MAX_TITLE_WORDS = 10
_TITLE = (
    "casefold(coalesce((select t.title from user_title t where t.external_id = conversations.external_id"
    " and t.platform = conversations.platform), title, first_message_preview, ''))"
)
_SESSION_OR_SUBAGENT = (
    "({0} or (external_id, platform) in (select parent_external_id, platform from subagent where {0}))"
)


def where_clause(
    db: sqlite3.Connection, filter_: Filter, *, with_subagent_times: bool = False
) -> tuple[str, dict[str, Any]]:
    """Return a filter as a condition on conversations, with its parameters.

    With `with_subagent_times`, `since` and `until` also match the times of a session's subagents. A subagent
    can continue in the background after the last message of its session.

    Raises `WorkspaceNotFoundError` if several workspace paths have the given end.
    """
    conditions: list[str] = []
    parameters: dict[str, Any] = {}
    time_condition = _SESSION_OR_SUBAGENT if with_subagent_times else "{}"
    if not filter_.with_unlisted:
        conditions.append("visibility in ('listed', 'archived')")
    if filter_.source is not None:
        conditions.append("source = :source")
        parameters["source"] = filter_.source
    for index, word in enumerate((filter_.title or "").split()[:_MAX_TITLE_WORDS]):
        if not index:
            add_casefold(db)
        conditions.append(f"instr({_TITLE}, :title{index})")
        parameters[f"title{index}"] = word.casefold()
    if filter_.workspace is not None:
        conditions.append("workspace_hash in (select value from json_each(:workspaces))")
        parameters["workspaces"] = msgspec.json.encode(workspace_hashes(db, filter_.workspace)).decode()
    if filter_.since is not None:
        conditions.append(time_condition.format("updated_at >= :since"))
        parameters["since"] = iso(filter_.since)
    if filter_.until is not None:
        conditions.append(time_condition.format("started_at < :until"))
        parameters["until"] = iso(filter_.until)
    if filter_.branch is not None:
        conditions.append("git_branch in (select value from json_each(:branches))")
        parameters["branches"] = msgspec.json.encode(_branches(db, filter_.branch)).decode()
    if filter_.model is not None:
        conditions.append(r"exists (select 1 from json_each(models) where value like :model escape '\')")
        parameters["model"] = like_pattern(filter_.model if "*" in filter_.model else f"*{filter_.model}*")
    if filter_.has_edits:
        conditions.append("total_changes > 0")
    if filter_.is_gone is not None:
        conditions.append("is_gone = :gone")
        parameters["gone"] = filter_.is_gone
    for index, tag in enumerate(filter_.tags):
        operator = "glob" if "*" in tag else "="
        conditions.append(
            "(external_id, platform) in"  # noqa: S608
            f" (select external_id, platform from tag where name {operator} :tag{index})"
        )
        parameters[f"tag{index}"] = glob_pattern(tag) if "*" in tag else tag
    if filter_.is_starred:
        conditions.append("(external_id, platform) in (select external_id, platform from star)")
    return " and ".join(conditions) or "1", parameters


def add_casefold(db: sqlite3.Connection) -> None:
    """Add the SQL function ``casefold``. The collation NOCASE ignores the case of ASCII letters only."""
    db.create_function("casefold", 1, _casefold, deterministic=True)


def _casefold(text: str | None) -> str | None:
    return text.casefold() if text is not None else None


def _branches(db: sqlite3.Connection, pattern: str) -> list[str]:
    """Return the branches that match. Python compares them, because SQLite folds the case of ASCII only."""
    pattern.encode()  # raises the same error as SQLite for lone surrogates
    rows = db.execute("select distinct git_branch from conversations where git_branch is not null")
    return [branch for (branch,) in rows if matches_pattern(branch.lower(), pattern.lower())]
