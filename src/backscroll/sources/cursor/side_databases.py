"""Databases with additional facts about sessions: the editor's search index and its code tracking."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from backscroll.errors import DatabaseLockedError, DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.model.commit import TrackedCode, TrackedEdit
from backscroll.model.message import Origin
from backscroll.model.problem import Problem
from backscroll.model.stream import Item, RecordCounts
from backscroll.readers.files import change_token
from backscroll.readers.sqlite import Database, as_bytes, problem_code
from backscroll.sources.cursor import locations

T = TypeVar("T")

_REQUEST_WEIGHT = 1_000_000  # more than a session has rows


def tracked_code(root: Path) -> TrackedCode:
    """Return what the editor tracks in ``ai-code-tracking.db``."""
    return SideDatabases(root).tracked_code()


class SideDatabases:
    """Titles, models and text of sessions in other databases. Each database is opened on first use."""

    def __init__(self, root: Path) -> None:
        self._search = locations.search_database(root)
        self._tracking = locations.tracking_database(root)
        self._tokens: dict[Path, str] = {}
        self._locked: set[Path] = set()
        self._titles: dict[str, str] | None = None
        self._summaries: dict[str, str] | None = None
        self._models: dict[str, str] | None = None
        self._problems: list[Problem] = []

    def token(self, path: Path) -> str:
        """Return the change token of a database before its first read; empty if it was locked."""
        if path in self._locked:
            return ""
        return self._tokens.setdefault(path, change_token(path))

    def read_counts(self, path: Path) -> Iterator[Item]:
        """Return the problems and record counts of a database. None of its rows is a message."""
        table = "conversations" if path == self._search else "conversation_summaries"
        row_count = self._query(path, lambda connection: _count_rows(connection, table))
        problems = self.take_problems()
        yield from problems
        counts = RecordCounts()
        if path in self._locked:
            counts.count("database", "problems")
        elif problems:
            counts.count("title", "problems", len(problems))
        elif row_count:
            counts.count("title", "ignored", row_count)
        yield counts

    def take_problems(self) -> list[Problem]:
        """Return the problems since the last call."""
        found, self._problems = self._problems, []
        return found

    def title(self, session_id: str) -> tuple[str, str] | None:
        """Return a title and the name of its store; for a session without a title of its own."""
        if self._titles is None:
            self._titles = self._query(self._search, _search_titles) or {}
        if title := self._titles.get(session_id):
            return title, "conversation-search"
        if self._summaries is None:
            self._summaries = self._query(self._tracking, _summary_titles) or {}
        if title := self._summaries.get(session_id):
            return title, "conversation_summaries"
        return None

    def model(self, session_id: str) -> str | None:
        """Return the model that wrote most of a session's code; for a session that only names "Auto"."""
        if self._models is None:
            self._models = self._query(self._tracking, _tracked_models) or {}
        return self._models.get(session_id)

    def search_text(self, session_id: str) -> str:
        """Return the text of a session in the search index; for a session that has lost its rows."""
        return self._query(self._search, lambda connection: _search_body(connection, session_id)) or ""

    def search_rows(self, session_id: str) -> list[tuple[str, str, dict[str, object]]]:
        """Return the table, key and columns of each row of a session in the search index."""
        return self._query(self._search, lambda connection: _search_rows(connection, session_id)) or []

    def tracked_code(self) -> TrackedCode:
        """Return the code and the commits that the editor tracks."""
        edits = self._query(self._tracking, _tracked_edits) or ()
        return TrackedCode(tuple(edits), self._query(self._tracking, _scored_commits) or {})

    def _query(self, path: Path | None, query: Callable[[sqlite3.Connection], T]) -> T | None:
        if path is None or not locations.is_file(path):
            return None
        self.token(path)
        try:
            with Database(path) as database:
                return database.read(query)
        except DatabaseNotFoundError:
            return None
        except DatabaseUnreadableError as error:
            if isinstance(error, DatabaseLockedError):
                self._locked.add(path)
            self._problems.append(Problem(Origin(str(path), "database"), problem_code(error), str(error)))
            return None
        except sqlite3.OperationalError:
            return None  # a build without this table or column


def _text(value: object) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace").strip()


def _search_titles(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("select id, title from conversations order by source = 'local'")
    return {_text(session_id): _text(title) for session_id, title in rows if _text(title)}


def _search_body(connection: sqlite3.Connection, session_id: str) -> str:
    rows = connection.execute(
        """
        select conversation_fts.body from conversations
        join conversation_fts on conversation_fts.rowid = conversations.fts_rowid
        where conversations.id = ?
        """,
        [session_id],
    )
    return next((_text(body) for (body,) in rows if _text(body)), "")


def _search_rows(connection: sqlite3.Connection, session_id: str) -> list[tuple[str, str, dict[str, object]]]:
    found = connection.execute("select * from conversations where id = ?", [session_id])
    column_names = [column[0] for column in found.description]
    rows: list[tuple[str, str, dict[str, object]]] = []
    for row in found.fetchall():
        columns = {name: _cell(value) for name, value in zip(column_names, row, strict=True)}
        fts_rowid = columns.get("fts_rowid")
        rows.append(("conversations", f"{session_id} {fts_rowid}", columns))
        body = connection.execute("select body from conversation_fts where rowid = ?", [fts_rowid]).fetchone()
        if body is not None:
            rows.append(("conversation_fts", str(fts_rowid), {"rowid": fts_rowid, "body": _cell(body[0])}))
    return rows


def _cell(value: object) -> object:
    """Convert a database value to one that JSON can represent."""
    return value if value is None or isinstance(value, int | float) else _text(value)


def _summary_titles(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("select conversationId, title from conversation_summaries")
    return {_text(session_id): _text(title) for session_id, title in rows if _text(title)}


def _count_rows(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"select count(*) from {table}").fetchone()[0])  # noqa: S608 - a constant


def _tracked_models(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the model with the most requests of each session; the number of rows breaks ties."""
    rows = connection.execute(
        """
        select conversationId, model, count(distinct requestId), count(*) from ai_code_hashes
        where conversationId is not null and model is not null and model not in ('', 'default')
        group by conversationId, model
        """
    )
    counts: dict[str, Counter[str]] = {}
    for session_id, model, request_count, row_count in rows:
        counts.setdefault(_text(session_id), Counter())[_text(model)] = (
            request_count or 0
        ) * _REQUEST_WEIGHT + row_count
    return {session_id: counter.most_common(1)[0][0] for session_id, counter in counts.items()}


def _tracked_edits(connection: sqlite3.Connection) -> list[TrackedEdit]:
    """Return one edit per request and file: a row is a fragment of code."""
    rows = connection.execute(
        "select conversationId, fileName, min(coalesce(nullif(timestamp, 0), createdAt)) from ai_code_hashes"
        " where conversationId <> '' and fileName <> '' group by conversationId, fileName, requestId"
    )
    return [
        TrackedEdit(_text(session_id), _text(path), at)
        for session_id, path, at in rows
        if isinstance(at, int)
    ]


def _scored_commits(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """Return the added lines by sessions and in total. The same commit can be on several branches."""
    rows = connection.execute("select commitHash, composerLinesAdded, linesAdded from scored_commits")
    return {
        _text(sha): (by_sessions, total)
        for sha, by_sessions, total in rows
        if isinstance(by_sessions, int) and isinstance(total, int)
    }
