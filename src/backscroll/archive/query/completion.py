"""Names for shell completion. Reads the archive's file directly, because opening an `Archive` is slower."""

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from backscroll.errors import ArchiveError

TIMEOUT_SECONDS = 0.1  # of waiting for a lock; the user is typing
_QUERIES = {  # by the name of the filter
    "workspace": "select workspace_name, max(updated_at) from conversations"
    " where workspace_name is not null group by workspace_name order by 2 desc",
    "branch": "select git_branch, max(updated_at) from conversations"
    " where git_branch is not null group by git_branch order by 2 desc",
    "model": "select value, max(updated_at) from conversations, json_each(models)"
    " group by value order by 2 desc",
    "tag": "select name, count(*) from tag group by name order by 2 desc, 1",
}


class SessionName(Struct, frozen=True):
    """A session as completion shows it."""

    source: str
    id: str
    title: str | None


class CompletionNames:
    """Read-only access to the names in an archive. The file is not created or changed.

    Raises `ArchiveError` if the file does not exist or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        uri = f"{path.absolute().as_uri()}?mode=ro"
        try:
            self._db = sqlite3.connect(uri, uri=True, timeout=TIMEOUT_SECONDS)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def values_of(self, filter_name: str) -> list[str]:
        """Return all values of a filter, last used first; tags by the number of their sessions."""
        query = _QUERIES.get(filter_name)
        return [value for value, _ in self._query(query, {})] if query else []

    def sessions(self, prefix: str, *, source: str | None, limit: int) -> list[SessionName]:
        """Return listed sessions with this id prefix, newest first."""
        rows = self._query(
            "select source, external_id, coalesce(title, first_message_preview) from conversations"
            " where visibility in ('listed', 'archived') and substr(external_id, 1, :length) = :prefix"
            " and (:source is null or source = :source) order by updated_at desc limit :limit",
            {"length": len(prefix), "prefix": prefix, "source": source, "limit": limit},
        )
        return [SessionName(*row) for row in rows]

    def _query(self, query: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> ArchiveError:
        return ArchiveError(f"Cannot read the archive {self._path}: {error}", self._path)
