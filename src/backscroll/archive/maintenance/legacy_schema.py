"""Conversations as they were kept before windows had a table of their own, and what becomes of each.

There ``session_id`` and ``external_session_id`` are set for both platforms, and there is no
``cursor_sessions``. No row is given up: where two rows want one name, a rule decides which of them
gets another. Where no rule helps, the plan says so and nothing may be carried out.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from backscroll.archive.derive.session_rows import conversation_id
from backscroll.errors import DatabaseUnreadableError, UsageError
from backscroll.model import UNKNOWN_WORKSPACE
from backscroll.readers.timestamps import from_value

__all__ = [
    "JSON_COLUMNS",
    "UpgradePlan",
    "UpgradeProblem",
    "Window",
    "detect_schema",
    "plan",
    "table_columns",
]

JSON_COLUMNS = ("context", "metadata", "tool_sequence", "acceptance_decisions")
_MOST_NAMED = 5
_PLATFORMS = ("claude_code", "cursor")
_WITH_WINDOWS = _PLATFORMS[1:]
_NEEDED = {"session_id", "external_session_id", "platform", "started_at"}
_OURS = {"conversations", "migration", "unit", "fragment"}


class UpgradeProblem(Struct, frozen=True):
    """Something about a database that is not as it should be, and what is done about it."""

    kind: str
    reason: str
    rows: tuple[str, ...] = ()  # ids
    stops: bool = False  # no rule helps: the database cannot be upgraded as it is

    @property
    def told(self) -> str:
        """A sentence for people, with the first of the rows."""
        if not self.rows:
            return self.reason
        more = len(self.rows) - _MOST_NAMED
        return (
            f"{self.reason} ({', '.join(self.rows[:_MOST_NAMED])}{f' and {more:,} more' if more > 0 else ''})"
        )


class Window(Struct):
    """A window of Cursor, put together from the conversations that were held in it."""

    name: str  # external_session_id
    session: str  # what its conversations call it
    workspace_hash: str
    workspace_name: str | None = None
    workspace_path: str | None = None
    started_at: Any = None
    ended_at: Any = None
    is_open: bool = False

    @property
    def id(self) -> str:
        return conversation_id(_WITH_WINDOWS[0], self.name)

    def take(self, row: "_Row", started_at: Any) -> None:
        """Learn from one of its conversations."""
        self.workspace_name = self.workspace_name or row.workspace_name
        self.workspace_path = self.workspace_path or row.workspace_path
        if self.started_at is None or _when(started_at) < _when(self.started_at):
            self.started_at = started_at
        if row.ended_at is None:
            self.is_open = True
        elif self.ended_at is None or _when(self.ended_at) < _when(row.ended_at):
            self.ended_at = row.ended_at


class Place(NamedTuple):
    """What becomes of one row."""

    row: int
    id: str
    external_id: str
    window: str | None
    started_at: Any


class UpgradePlan(Struct):
    """What becomes of a whole database."""

    places: list[Place]
    windows: list[Window]
    problems: list[UpgradeProblem]


class _Row(NamedTuple):
    number: int
    id: Any
    session_id: Any
    external_id: Any
    platform: Any
    workspace_hash: Any
    workspace_name: Any
    workspace_path: Any
    started_at: Any
    ended_at: Any

    @property
    def label(self) -> str:
        return str(self.id) if self.id not in (None, "") else f"row {self.number}"


def table_columns(db: sqlite3.Connection, table: str) -> dict[str, tuple[str, bool, str | None]]:
    """A table's columns by name: type, whether null is refused, and default."""
    rows = db.execute('select name, type, "notnull", dflt_value from pragma_table_xinfo(?)', [table])
    return {name: (type_, bool(notnull), default) for name, type_, notnull, default in rows}


def detect_schema(db: sqlite3.Connection, path: Path) -> Literal["old", "upgraded"]:
    """Which schema a database has. One that is neither is refused with a sentence."""
    tables = {name.lower() for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
    if tables >= _OURS:
        raise UsageError(
            f"{path} is an archive of Backscroll, which brings itself up to date when it is used"
        )
    names = (
        {name.lower() for name in table_columns(db, "conversations")} if "conversations" in tables else set()
    )
    has_windows = "cursor_sessions" in tables
    is_new = {"id", "session_id", "external_id", "platform"} <= names and "external_session_id" not in names
    if has_windows and is_new:
        return "upgraded"
    missing = sorted(_NEEDED - names)
    if missing:
        what = f"its conversations have no {', '.join(missing)}" if names else "it has no table conversations"
        raise DatabaseUnreadableError(f"{path} cannot be upgraded: {what}. Nothing was changed.", path)
    if has_windows or "external_id" in names:
        raise DatabaseUnreadableError(
            f"{path} is partly upgraded already, by another program that did not finish;"
            " put its own backup back first. Nothing was changed.",
            path,
        )
    return "old"


def plan(db: sqlite3.Connection) -> UpgradePlan:
    """Decide on every row, earliest first. Nothing is written."""
    rows = sorted(_rows(db), key=lambda row: (_when(row.started_at), row.number))
    problems = list(_problems_of(rows)) + list(_malformed(db, rows))
    windows, window_of = _windows(rows)
    taken: set[tuple[Any, str]] = set()
    ids: set[str] = set()
    repeated: list[str] = []
    places: list[Place] = []
    for row in rows:
        external = str(row.id if row.external_id in (None, "") else row.external_id)
        if (row.platform, external) in taken:
            repeated.append(row.label)
            external = f"{external}#{row.label}"
        taken.add((row.platform, external))
        id_ = str(row.id) if row.id not in (None, "") else ""
        if not id_ or id_ in ids:
            id_ = conversation_id(str(row.platform), external)
        ids.add(id_)
        window = window_of.get(row.number)
        places.append(Place(row.number, id_, external, window.id if window else None, _started(row)))
    if repeated:
        problems.append(
            UpgradeProblem(
                "duplicate",
                "these have the external id of an earlier conversation of their platform;"
                " '#' and their own id were added to it",
                tuple(repeated),
            )
        )
    shared = {window.session for window in windows if window.name != window.session}
    if apart := [row.label for row in rows if row.number in window_of and str(row.session_id) in shared]:
        problems.append(
            UpgradeProblem(
                "several workspaces",
                "these share a session id across workspaces; each workspace got a window,"
                " and '@' and its hash were added to the session id of all but the first",
                tuple(apart),
            )
        )
    return UpgradePlan(places, windows, problems)


def _rows(db: sqlite3.Connection) -> Iterator[_Row]:
    names = {name.lower() for name in table_columns(db, "conversations")}
    context = "iif(typeof(context) = 'text' and json_valid(context), {}, null)"
    wanted = [
        name if name in names else f"null as {name}"
        for name in (
            "id",
            "session_id",
            "external_session_id",
            "platform",
            "workspace_hash",
            "workspace_name",
        )
    ]
    wanted.append(
        context.format("json_extract(context, '$.workspace_path')") if "context" in names else "null"
    )
    wanted += ["started_at", "ended_at" if "ended_at" in names else "null"]
    query = f"select _rowid_, {', '.join(wanted)} from conversations"  # noqa: S608 - names are ours
    return map(_Row._make, db.execute(query))


def _when(value: Any) -> tuple[bool, float, str]:
    """Times of every spelling in one order; what is no time comes last."""
    at = from_value(value)
    return (False, at.timestamp(), "") if at is not None else (True, 0.0, str(value))


def _started(row: _Row) -> Any:
    return row.ended_at if row.started_at is None else row.started_at


def _windows(rows: Iterable[_Row]) -> tuple[list[Window], dict[int, Window]]:
    """One window for each session id and workspace; without a workspace, the session's first."""
    sessions: dict[str, dict[str, list[_Row]]] = {}
    for row in rows:
        if row.platform in _WITH_WINDOWS:
            known = row.workspace_hash not in (None, "")
            hash_ = str(row.workspace_hash) if known else UNKNOWN_WORKSPACE
            session = f"workspace:{hash_}" if row.session_id in (None, "") else str(row.session_id)
            sessions.setdefault(session, {}).setdefault(hash_, []).append(row)
    windows: list[Window] = []
    window_of: dict[int, Window] = {}
    for session, by_workspace in sessions.items():
        homeless = by_workspace.pop(UNKNOWN_WORKSPACE, []) if len(by_workspace) > 1 else []
        for place, (hash_, held) in enumerate(by_workspace.items()):
            window = Window(f"{session}@{hash_}" if place else session, session, hash_)
            windows.append(window)
            for row in held if place else [*held, *homeless]:
                window.take(row, _started(row))
                window_of[row.number] = window
    return windows, window_of


def _problems_of(rows: Iterable[_Row]) -> Iterator[UpgradeProblem]:
    found: dict[tuple[str, str, bool], list[str]] = {}
    for row in rows:
        for said in _wrong_with(row):
            found.setdefault(said, []).append(row.label)
    for (kind, reason, stops), labels in found.items():
        yield UpgradeProblem(kind, reason, tuple(labels), stops)


def _wrong_with(row: _Row) -> Iterator[tuple[str, str, bool]]:
    if row.platform not in _PLATFORMS:
        yield "unknown platform", f"the platform {row.platform!r} is not one of {', '.join(_PLATFORMS)}", True
    if row.started_at is None:
        if row.ended_at is None:
            yield "null", "there is neither started_at nor ended_at", True
        else:
            yield "null", "there is no started_at; ended_at was taken", False
    if row.external_id in (None, ""):
        if row.id in (None, ""):
            yield "null", "there is neither id nor external_session_id", True
        else:
            yield "null", "there is no external_session_id; the id was taken", False
    elif row.id in (None, ""):
        yield "null", "there is no id; one was made of platform and external id", False
    if row.platform not in _WITH_WINDOWS:
        return
    if row.session_id in (None, ""):
        yield "orphan", "there is no session id; the window of the workspace was taken", False
    if row.workspace_hash in (None, ""):
        yield "orphan", "there is no workspace; the session's first window was taken", False


def _malformed(db: sqlite3.Connection, rows: Iterable[_Row]) -> Iterator[UpgradeProblem]:
    names = {name.lower() for name in table_columns(db, "conversations")}
    labels = {row.number: row.label for row in rows}
    for column in filter(names.__contains__, JSON_COLUMNS):
        query = (
            f"select _rowid_ from conversations where {column} is not null"  # noqa: S608 - names are ours
            f" and iif(typeof({column}) = 'text', not json_valid({column}), 1)"
        )
        if found := tuple(labels[number] for (number,) in db.execute(query)):
            yield UpgradeProblem("malformed JSON", f"{column} is no JSON; it was kept as it is", found)
