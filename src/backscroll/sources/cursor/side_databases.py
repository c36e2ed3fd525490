"""Databases beside the main one: the editor's own search index, and its record of generated code."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from backscroll.errors import DatabaseLockedError, DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.model import Item, Origin, Problem, RecordCounts
from backscroll.readers.sqlite import Database, as_bytes, change_token, problem_code
from backscroll.sources.cursor import locations

__all__ = ["SideDatabases"]

T = TypeVar("T")


class SideDatabases:
    """Titles, models and text that other stores know of sessions. Nothing is opened before it is needed."""

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
        """How a database stood before anything was read from it; empty when somebody held it."""
        if path in self._locked:
            return ""
        return self._tokens.setdefault(path, change_token(path))

    def count(self, path: Path) -> Iterator[Item]:
        """The account of one of the databases: nothing in it is a message."""
        table = "conversations" if path == self._search else "conversation_summaries"
        found = self._ask(path, lambda connection: _count(connection, table))
        problems = self.problems()
        yield from problems
        counts = RecordCounts()
        if path in self._locked:
            counts.count("database", "problems")
        elif problems:
            counts.count("title", "problems", len(problems))
        elif found:
            counts.count("title", "ignored", found)
        yield counts

    def problems(self) -> list[Problem]:
        """What could not be read since this was last asked."""
        found, self._problems = self._problems, []
        return found

    def title(self, session: str) -> tuple[str, str] | None:
        """A title and the store that has it, for a session whose own records have none."""
        if self._titles is None:
            self._titles = self._ask(self._search, _search_titles) or {}
        if title := self._titles.get(session):
            return title, "conversation-search"
        if self._summaries is None:
            self._summaries = self._ask(self._tracking, _summary_titles) or {}
        if title := self._summaries.get(session):
            return title, "conversation_summaries"
        return None

    def model(self, session: str) -> str | None:
        """The model that wrote most of a session's code, where the session itself says only "Auto"."""
        if self._models is None:
            self._models = self._ask(self._tracking, _tracked_models) or {}
        return self._models.get(session)

    def body(self, session: str) -> str:
        """All text of a session as the search index holds it: what is left when its rows are lost."""
        return self._ask(self._search, lambda connection: _search_body(connection, session)) or ""

    def search_rows(self, session: str) -> list[tuple[str, str, dict[str, object]]]:
        """Table, key and columns of what the search index holds of a session."""
        return self._ask(self._search, lambda connection: _search_rows(connection, session)) or []

    def _ask(self, path: Path | None, work: Callable[[sqlite3.Connection], T]) -> T | None:
        if path is None or not locations.is_file(path):
            return None
        self.token(path)
        try:
            with Database(path) as database:
                return database.read(work)
        except DatabaseNotFoundError:
            return None
        except DatabaseUnreadableError as error:
            if isinstance(error, DatabaseLockedError):
                self._locked.add(path)
            self._problems.append(Problem(Origin(str(path), "database"), problem_code(error), str(error)))
            return None
        except sqlite3.OperationalError:
            return None  # an older build without this table or column


def _text(value: object) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace").strip()


def _search_titles(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("select id, title from conversations order by source = 'local'")
    return {_text(name): _text(title) for name, title in rows if _text(title)}


def _search_body(connection: sqlite3.Connection, session: str) -> str:
    rows = connection.execute(
        """
        select conversation_fts.body from conversations
        join conversation_fts on conversation_fts.rowid = conversations.fts_rowid
        where conversations.id = ?
        """,
        [session],
    )
    return next((_text(body) for (body,) in rows if _text(body)), "")


def _search_rows(connection: sqlite3.Connection, session: str) -> list[tuple[str, str, dict[str, object]]]:
    found = connection.execute("select * from conversations where id = ?", [session])
    names = [column[0] for column in found.description]
    rows: list[tuple[str, str, dict[str, object]]] = []
    for row in found.fetchall():
        columns = {name: _cell(value) for name, value in zip(names, row, strict=True)}
        number = columns.get("fts_rowid")
        rows.append(("conversations", f"{session} {number}", columns))
        body = connection.execute("select body from conversation_fts where rowid = ?", [number]).fetchone()
        if body is not None:
            rows.append(("conversation_fts", str(number), {"rowid": number, "body": _cell(body[0])}))
    return rows


def _cell(value: object) -> object:
    """A cell as JSON can hold it."""
    return value if value is None or isinstance(value, int | float) else _text(value)


def _summary_titles(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("select conversationId, title from conversation_summaries")
    return {_text(name): _text(title) for name, title in rows if _text(title)}


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"select count(*) from {table}").fetchone()[0])  # noqa: S608 - names are ours


def _tracked_models(connection: sqlite3.Connection) -> dict[str, str]:
    """The most frequent model of each session; one row is a piece of code, not a request."""
    rows = connection.execute(
        """
        select conversationId, model, count(distinct requestId), count(*) from ai_code_hashes
        where conversationId is not null and model is not null and model not in ('', 'default')
        group by conversationId, model
        """
    )
    counts: dict[str, Counter[str]] = {}
    for name, model, requests, pieces in rows:
        counts.setdefault(_text(name), Counter())[_text(model)] = (requests or 0) * 1_000_000 + pieces
    return {name: counter.most_common(1)[0][0] for name, counter in counts.items()}
