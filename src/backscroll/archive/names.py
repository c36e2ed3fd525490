"""Names that sessions have, for whoever begins to type one."""

import sqlite3
from typing import Literal

from msgspec import Struct

__all__ = ["Kind", "Named", "live", "names_of", "sessions_beginning"]

Kind = Literal["workspace", "branch", "model"]

_QUERIES: dict[Kind, str] = {
    "workspace": "select workspace_name, max(updated_at) from conversations"
    " where workspace_name is not null group by workspace_name order by 2 desc",
    "branch": "select git_branch, max(updated_at) from conversations"
    " where git_branch is not null group by git_branch order by 2 desc",
    "model": "select value, max(updated_at) from conversations, json_each(models)"
    " group by value order by 2 desc",
}


def names_of(db: sqlite3.Connection, kind: Kind) -> list[str]:
    """Every name of this kind, the one met last first."""
    return [name for name, _ in db.execute(_QUERIES[kind])]


class Named(Struct, frozen=True):
    """A session as it is called."""

    source: str
    id: str
    title: str | None


def sessions_beginning(db: sqlite3.Connection, start: str, *, source: str | None, limit: int) -> list[Named]:
    """Listed sessions whose id begins so, newest first."""
    rows = db.execute(
        "select source, external_id, coalesce(title, first_message_preview) from conversations"
        " where visibility in ('listed', 'archived') and substr(external_id, 1, :length) = :start"
        " and (:source is null or source = :source) order by updated_at desc limit :limit",
        {"length": len(start), "start": start, "source": source, "limit": limit},
    )
    return [Named(*row) for row in rows]


def live(db: sqlite3.Connection) -> set[tuple[str, str]]:
    """Sessions that are being held, by platform and id."""
    return set(db.execute("select platform, external_id from conversations where ended_at is null"))
