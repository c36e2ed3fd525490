"""Names that sessions have, for whoever begins to type one: read at once, and without opening the archive."""

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from msgspec import Struct

from backscroll.errors import ArchiveError

__all__ = ["Kind", "Named", "Names", "live"]

Kind = Literal["workspace", "branch", "model", "tag"]

_PATIENCE = 0.1  # seconds
_QUERIES: dict[Kind, str] = {
    "workspace": "select workspace_name, max(updated_at) from conversations"
    " where workspace_name is not null group by workspace_name order by 2 desc",
    "branch": "select git_branch, max(updated_at) from conversations"
    " where git_branch is not null group by git_branch order by 2 desc",
    "model": "select value, max(updated_at) from conversations, json_each(models)"
    " group by value order by 2 desc",
    "tag": "select name, count(*) from tag group by name order by 2 desc, 1",
}


class Named(Struct, frozen=True):
    """A session as it is called."""

    source: str
    id: str
    title: str | None


class Names:
    """The names in an archive's file, which is neither made nor changed.

    Raises `ArchiveError` when there is none, or none that can be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def of(self, kind: Kind) -> list[str]:
        """Every name of this kind, the one met last first; the tag that most sessions have first."""
        return [name for name, _ in self._asked(_QUERIES[kind], {})]

    def sessions(self, start: str, *, source: str | None, limit: int) -> list[Named]:
        """Listed sessions whose id begins so, newest first."""
        rows = self._asked(
            "select source, external_id, coalesce(title, first_message_preview) from conversations"
            " where visibility in ('listed', 'archived') and substr(external_id, 1, :length) = :start"
            " and (:source is null or source = :source) order by updated_at desc limit :limit",
            {"length": len(start), "start": start, "source": source, "limit": limit},
        )
        return [Named(*row) for row in rows]

    def _asked(self, query: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> ArchiveError:
        return ArchiveError(f"the archive {self._path} cannot be read: {error}", self._path)


def live(db: sqlite3.Connection) -> set[tuple[str, str]]:
    """Sessions that are being held, by platform and id."""
    return set(db.execute("select platform, external_id from conversations where ended_at is null"))
