"""Plan the upgrade of another program's database from the old unified schema to the current one.

In the old schema, ``session_id`` and ``external_session_id`` are set for both platforms, and there is no
table ``cursor_sessions``. No row is dropped: if two rows have the same id, a rule renames one of them. A row
that no rule can convert stops the upgrade.
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
_MAX_LISTED_ROWS = 5
_PLATFORMS = ("claude_code", "cursor")
_WINDOW_PLATFORMS = _PLATFORMS[1:]
_REQUIRED_COLUMNS = {"session_id", "external_session_id", "platform", "started_at"}
_ARCHIVE_TABLES = {"conversations", "migration", "unit", "fragment"}


class UpgradeProblem(Struct, frozen=True):
    """An irregularity in the database and how the upgrade handles it."""

    kind: str
    reason: str
    rows: tuple[str, ...] = ()  # ids
    stops: bool = False  # the database cannot be upgraded

    @property
    def text(self) -> str:
        """Reason and the first affected rows."""
        if not self.rows:
            return self.reason
        rows = ", ".join(self.rows[:_MAX_LISTED_ROWS])
        more = len(self.rows) - _MAX_LISTED_ROWS
        return f"{self.reason} ({rows}{f' and {more:,} more' if more > 0 else ''})"


class Window(Struct):
    """A Cursor window, derived from its conversations."""

    name: str  # external_session_id
    session: str  # session_id of its conversations
    workspace_hash: str
    workspace_name: str | None = None
    workspace_path: str | None = None
    started_at: Any = None
    ended_at: Any = None
    is_open: bool = False

    @property
    def id(self) -> str:
        return conversation_id(_WINDOW_PLATFORMS[0], self.name)

    def add(self, row: "_Row", started_at: Any) -> None:
        """Extend the window by one of its conversations."""
        self.workspace_name = self.workspace_name or row.workspace_name
        self.workspace_path = self.workspace_path or row.workspace_path
        if self.started_at is None or _time_key(started_at) < _time_key(self.started_at):
            self.started_at = started_at
        if row.ended_at is None:
            self.is_open = True
        elif self.ended_at is None or _time_key(self.ended_at) < _time_key(row.ended_at):
            self.ended_at = row.ended_at


class RowKeys(NamedTuple):
    """New keys of one row."""

    row: int
    id: str
    external_id: str
    window: str | None
    started_at: Any


class UpgradePlan(Struct):
    """New keys of all rows, new windows, and problems."""

    row_keys: list[RowKeys]
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
    """Return the columns of a table by name: type, whether it is not null, default."""
    rows = db.execute('select name, type, "notnull", dflt_value from pragma_table_xinfo(?)', [table])
    return {name: (type_, bool(notnull), default) for name, type_, notnull, default in rows}


def detect_schema(db: sqlite3.Connection, path: Path) -> Literal["old", "upgraded"]:
    """Return which schema a database has. Raises an error if it has neither."""
    tables = {name.lower() for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
    if tables >= _ARCHIVE_TABLES:
        raise UsageError(
            f"{path} is an archive of Backscroll. It is migrated automatically when it is opened."
        )
    names = (
        {name.lower() for name in table_columns(db, "conversations")} if "conversations" in tables else set()
    )
    has_windows = "cursor_sessions" in tables
    is_new = {"id", "session_id", "external_id", "platform"} <= names and "external_session_id" not in names
    if has_windows and is_new:
        return "upgraded"
    missing = sorted(_REQUIRED_COLUMNS - names)
    if missing:
        reason = (
            f"its conversations have no {', '.join(missing)}" if names else "it has no table conversations"
        )
        raise DatabaseUnreadableError(f"{path} cannot be upgraded: {reason}. Nothing was changed.", path)
    if has_windows or "external_id" in names:
        raise DatabaseUnreadableError(
            f"{path} is partly upgraded: another program did not finish. Restore that program's backup first."
            " Nothing was changed.",
            path,
        )
    return "old"


def plan(db: sqlite3.Connection) -> UpgradePlan:
    """Plan the new keys of every row, earliest first. Write nothing."""
    rows = sorted(_rows(db), key=lambda row: (_time_key(row.started_at), row.number))
    problems = list(_row_problems(rows)) + list(_malformed_json(db, rows))
    windows, window_of = _windows(rows)
    used: set[tuple[Any, str]] = set()
    ids: set[str] = set()
    duplicates: list[str] = []
    row_keys: list[RowKeys] = []
    for row in rows:
        external = str(row.id if row.external_id in (None, "") else row.external_id)
        if (row.platform, external) in used:
            duplicates.append(row.label)
            external = f"{external}#{row.label}"
        used.add((row.platform, external))
        id_ = str(row.id) if row.id not in (None, "") else ""
        if not id_ or id_ in ids:
            id_ = conversation_id(str(row.platform), external)
        ids.add(id_)
        window = window_of.get(row.number)
        row_keys.append(RowKeys(row.number, id_, external, window.id if window else None, _start_of(row)))
    if duplicates:
        problems.append(
            UpgradeProblem(
                "duplicate",
                "external id of an earlier conversation of the same platform;"
                " '#' and the own id were appended",
                tuple(duplicates),
            )
        )
    shared = {window.session for window in windows if window.name != window.session}
    if split := [row.label for row in rows if row.number in window_of and str(row.session_id) in shared]:
        problems.append(
            UpgradeProblem(
                "several workspaces",
                "session id is shared by several workspaces; each workspace got a window, and '@'"
                " and its hash"
                " were appended to the session id of all but the first",
                tuple(split),
            )
        )
    return UpgradePlan(row_keys, windows, problems)


def _rows(db: sqlite3.Connection) -> Iterator[_Row]:
    names = {name.lower() for name in table_columns(db, "conversations")}
    context = "iif(typeof(context) = 'text' and json_valid(context), {}, null)"
    columns = [
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
    columns.append(
        context.format("json_extract(context, '$.workspace_path')") if "context" in names else "null"
    )
    columns += ["started_at", "ended_at" if "ended_at" in names else "null"]
    query = f"select _rowid_, {', '.join(columns)} from conversations"  # noqa: S608 - names are ours
    return map(_Row._make, db.execute(query))


def _time_key(value: Any) -> tuple[bool, float, str]:
    """Return a sort key for times in any notation. Invalid times sort last."""
    at = from_value(value)
    return (False, at.timestamp(), "") if at is not None else (True, 0.0, str(value))


def _start_of(row: _Row) -> Any:
    return row.ended_at if row.started_at is None else row.started_at


def _windows(rows: Iterable[_Row]) -> tuple[list[Window], dict[int, Window]]:
    """Group rows into windows by session id and workspace. Rows without a workspace join the first window."""
    sessions: dict[str, dict[str, list[_Row]]] = {}
    for row in rows:
        if row.platform in _WINDOW_PLATFORMS:
            known = row.workspace_hash not in (None, "")
            hash_ = str(row.workspace_hash) if known else UNKNOWN_WORKSPACE
            session = f"workspace:{hash_}" if row.session_id in (None, "") else str(row.session_id)
            sessions.setdefault(session, {}).setdefault(hash_, []).append(row)
    windows: list[Window] = []
    window_of: dict[int, Window] = {}
    for session, by_workspace in sessions.items():
        unassigned = by_workspace.pop(UNKNOWN_WORKSPACE, []) if len(by_workspace) > 1 else []
        for index, (hash_, members) in enumerate(by_workspace.items()):
            window = Window(f"{session}@{hash_}" if index else session, session, hash_)
            windows.append(window)
            for row in members if index else [*members, *unassigned]:
                window.add(row, _start_of(row))
                window_of[row.number] = window
    return windows, window_of


def _row_problems(rows: Iterable[_Row]) -> Iterator[UpgradeProblem]:
    found: dict[tuple[str, str, bool], list[str]] = {}
    for row in rows:
        for problem in _problems_of(row):
            found.setdefault(problem, []).append(row.label)
    for (kind, reason, stops), labels in found.items():
        yield UpgradeProblem(kind, reason, tuple(labels), stops)


def _problems_of(row: _Row) -> Iterator[tuple[str, str, bool]]:
    if row.platform not in _PLATFORMS:
        yield "unknown platform", f"the platform {row.platform!r} is not one of {', '.join(_PLATFORMS)}", True
    if row.started_at is None:
        if row.ended_at is None:
            yield "null", "neither started_at nor ended_at", True
        else:
            yield "null", "no started_at; ended_at is used", False
    if row.external_id in (None, ""):
        if row.id in (None, ""):
            yield "null", "neither id nor external_session_id", True
        else:
            yield "null", "no external_session_id; id is used", False
    elif row.id in (None, ""):
        yield "null", "no id; a new one is derived from platform and external id", False
    if row.platform not in _WINDOW_PLATFORMS:
        return
    if row.session_id in (None, ""):
        yield "orphan", "no session id; the window of the workspace is used", False
    if row.workspace_hash in (None, ""):
        yield "orphan", "no workspace; the first window of the session is used", False


def _malformed_json(db: sqlite3.Connection, rows: Iterable[_Row]) -> Iterator[UpgradeProblem]:
    names = {name.lower() for name in table_columns(db, "conversations")}
    labels = {row.number: row.label for row in rows}
    for column in filter(names.__contains__, JSON_COLUMNS):
        query = (
            f"select _rowid_ from conversations where {column} is not null"  # noqa: S608 - names are ours
            f" and iif(typeof({column}) = 'text', not json_valid({column}), 1)"
        )
        if found := tuple(labels[number] for (number,) in db.execute(query)):
            yield UpgradeProblem("malformed JSON", f"{column} is not JSON; copied unchanged", found)
