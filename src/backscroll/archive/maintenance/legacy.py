"""Upgrade another program's database from the old unified schema to the one with windows, and import it.

An upgrade creates a verified backup, then changes everything in one transaction and checks the result before
the commit. If anything fails, the database is unchanged.

In the old schema, ``session_id`` and ``external_session_id`` are set for both platforms, and there is no
table ``cursor_sessions``. No row is dropped: if two rows have the same id, a rule renames one of them. A row
that no rule can convert stops the upgrade.

Imported conversations have no messages, so their completeness is ``lossy``. Sessions that the archive already
contains stay unchanged. A session that is read from the tool's own files later replaces the imported one.
"""

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from backscroll.archive.connection import connect, transaction
from backscroll.archive.derive.session_rows import conversation_id
from backscroll.archive.derive.windows import WINDOW_PLATFORM
from backscroll.archive.write.exclusions import Exclusions
from backscroll.errors import (
    BackscrollError,
    DatabaseLockedError,
    DatabaseNotFoundError,
    DatabaseUnreadableError,
    DestinationError,
    UsageError,
)
from backscroll.model.dates import iso
from backscroll.model.text import pluralize
from backscroll.model.workspace import UNKNOWN_WORKSPACE, Workspace
from backscroll.readers.timestamps import from_value

JSON_COLUMNS = ("context", "metadata", "tool_sequence", "acceptance_decisions")
_BUSY_TIMEOUT_SECONDS = 5.0
_MAX_LISTED_ROWS = 5
_REQUIRED_SPACE_FACTOR = 3  # the backup, the new tables in addition to the old ones, and the journal
_PLATFORMS = ("claude_code", "cursor")
_WINDOW_PLATFORMS = _PLATFORMS[1:]
_REQUIRED_COLUMNS = {"session_id", "external_session_id", "platform", "started_at"}
_ARCHIVE_TABLES = {"conversations", "migration", "unit", "fragment"}
_PLANNED = {"id": "id", "session_id": "window", "external_id": "external_id"}  # column: column of the plan
_WINDOWS = """
create table cursor_sessions (
    id text primary key,
    external_session_id text not null unique,
    workspace_hash text not null,
    workspace_name text,
    workspace_path text,
    started_at timestamp not null,
    ended_at timestamp,
    metadata text default '{}'
);
create index idx_cursor_sessions_workspace on cursor_sessions(workspace_hash);
create index idx_cursor_sessions_time on cursor_sessions(started_at desc);
create index idx_cursor_sessions_external on cursor_sessions(external_session_id);
"""
_COLUMNS = {
    "id": "text primary key",
    "session_id": "text",
    "external_id": "text not null",
    "platform": "text not null",
    "workspace_hash": "text",
    "workspace_name": "text",
    "started_at": "timestamp not null",
    "ended_at": "timestamp",
    "context": "text default '{}'",
    "metadata": "text default '{}'",
    "tool_sequence": "text default '[]'",
    "acceptance_decisions": "text default '[]'",
    "interaction_count": "integer default 0",
    "acceptance_rate": "real",
    "total_tokens": "integer default 0",
    "total_changes": "integer default 0",
}
_CONSTRAINTS = """
    foreign key (session_id) references cursor_sessions(id),
    check (
        (platform = 'cursor' and session_id is not null) or
        (platform = 'claude_code' and session_id is null)
    ),
    unique (external_id, platform)
"""
_INDEXES = {
    "idx_conversations_session_cursor": "conversations(session_id) where platform = 'cursor'",
    "idx_conversations_external": "conversations(external_id, platform)",
    "idx_conversations_platform_time": "conversations(platform, started_at desc)",
    "idx_conversations_workspace": "conversations(workspace_hash) where workspace_hash is not null",
}
# Queries that return no row for a valid database.
_CHECKS = (
    "select id from conversations where (platform = 'cursor' and session_id is null)"
    " or (platform = 'claude_code' and session_id is not null)",
    "select c.id from conversations c left join cursor_sessions s on c.session_id = s.id"
    " where c.platform = 'cursor' and s.id is null",
    "select external_id from conversations group by external_id, platform having count(*) > 1",
    "select integrity_check from pragma_integrity_check('conversations') where integrity_check <> 'ok'",
    "select integrity_check from pragma_integrity_check('cursor_sessions') where integrity_check <> 'ok'",
)
_Orphans = set[tuple[str, int | None, str, int]]
_SOURCES = {"claude_code": "claude-code", "cursor": "cursor"}  # of the platforms that the program knew
_EXPECTED: dict[str, type] = dict(zip(JSON_COLUMNS, (dict, dict, list, list), strict=True))


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


class UpgradeResult(Struct, frozen=True):
    """Outcome of an upgrade."""

    path: str
    is_changed: bool  # False: it was already upgraded
    backup: str | None = None
    rows: dict[str, int] = {}  # conversations by platform
    windows: int = 0
    problems: tuple[UpgradeProblem, ...] = ()


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


class _Window(Struct):
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


class _RowKeys(NamedTuple):
    """New keys of one row."""

    row: int
    id: str
    external_id: str
    window: str | None
    started_at: Any


class UpgradePlan(Struct):
    """New keys of all rows, new windows, and problems."""

    row_keys: list[_RowKeys]
    windows: list[_Window]
    problems: list[UpgradeProblem]


class _StoppedError(Exception):
    """The database cannot be upgraded, or the result is invalid."""


def upgrade_legacy(path: Path) -> UpgradeResult:
    """Upgrade a database in place. Do nothing if it is already upgraded.

    Raises `DatabaseNotFoundError`, `DatabaseUnreadableError` (also if a row cannot be converted),
    `DatabaseLockedError` or `DestinationError`. The database is unchanged then.
    """
    if not path.is_file():
        raise DatabaseNotFoundError(f"The database {path} does not exist.", path)
    backups: list[Path] = []
    try:
        with closing(open_existing(path, timeout=_BUSY_TIMEOUT_SECONDS)) as db:
            if _detect_schema(db, path) == "upgraded":
                return UpgradeResult(str(path), is_changed=False)
            if not path.stat().st_mode & 0o222:
                raise DestinationError(f"{path} is read-only. Nothing was changed.", path)
            return _upgrade_locked(db, path, backups)
    except (sqlite3.Error, OSError, _StoppedError) as error:
        raise _to_backscroll_error(error, path, backups) from error


def _upgrade_locked(db: sqlite3.Connection, path: Path, backups: list[Path]) -> UpgradeResult:
    # Cannot be set inside a transaction. Without them, tables that refer to this one would be changed.
    db.execute("pragma foreign_keys = off")
    db.execute("pragma legacy_alter_table = on")
    db.execute("begin immediate")
    try:
        if _detect_schema(db, path) == "upgraded":  # by another process in the meantime
            db.execute("rollback")
            return UpgradeResult(str(path), is_changed=False)
        backups.append(create_backup(path))
        planned = plan(db)
        if stopping := [problem for problem in planned.problems if problem.stops]:
            raise _StoppedError("; ".join(problem.text for problem in stopping))
        orphans = _orphans(db)
        planned.problems += _orphan_problems(orphans)
        rows = _count_by_platform(db)
        _write_tables(db, planned)
        _replace(db, planned)
        _verify(db, rows, orphans)
        db.execute("commit")
    except BaseException:
        if db.in_transaction:  # SQLite rolls back by itself if the disk is full
            db.execute("rollback")
        raise
    windows = len(planned.windows)
    return UpgradeResult(str(path), True, str(backups[0]), rows, windows, tuple(planned.problems))


def _to_backscroll_error(error: Exception, path: Path, backups: list[Path]) -> BackscrollError:
    unchanged = f"It was not changed{f'; the backup is {backups[0]}' if backups else ''}."
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int) and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return DatabaseLockedError(
            f"{path} is in use by another program. Close it and try again. {unchanged}", path
        )
    message = f"{path} cannot be upgraded: {error}. {unchanged}"
    destination_codes = (
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
    )
    if isinstance(error, OSError) or (isinstance(code, int) and code & 0xFF in destination_codes):
        return DestinationError(message, path)
    return DatabaseUnreadableError(message, path)


def open_existing(path: Path, *, mode: str = "rw", timeout: float = 5.0) -> sqlite3.Connection:
    """Open a database. Unlike `sqlite3.connect`, do not create it."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)


def _detect_schema(db: sqlite3.Connection, path: Path) -> Literal["old", "upgraded"]:
    """Return which schema a database has. Raises an error if it has neither."""
    tables = {name.lower() for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
    if tables >= _ARCHIVE_TABLES:
        raise UsageError(
            f"{path} is an archive of Backscroll. It is migrated automatically when it is opened."
        )
    names = (
        {name.lower() for name in _table_columns(db, "conversations")} if "conversations" in tables else set()
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


def _table_columns(db: sqlite3.Connection, table: str) -> dict[str, tuple[str, bool, str | None]]:
    """Return the columns of a table by name: type, whether it is not null, default."""
    rows = db.execute('select name, type, "notnull", dflt_value from pragma_table_xinfo(?)', [table])
    return {name: (type_, bool(notnull), default) for name, type_, notnull, default in rows}


def create_backup(path: Path) -> Path:
    """Copy a database to ``<name>.backup-<UTC time>`` in the same folder, verify and return the copy.

    The caller keeps other processes from writing. Raises `DestinationError` if the disk has too little space.
    """
    size = sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists())
    free = shutil.disk_usage(path.parent).free
    if free < _REQUIRED_SPACE_FACTOR * size:
        raise DestinationError(
            f"The upgrade of {path} needs {_REQUIRED_SPACE_FACTOR * size / 1e6:,.1f} MB in the same folder;"
            f" {free / 1e6:,.1f} MB are free. Nothing was changed.",
            path,
        )
    target = _unused_name(path)
    partial = target.with_name(f"{target.name}.partial")
    try:
        with closing(open_existing(path, mode="ro")) as source, closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
            shutil.copymode(path, partial)
            found = [row[0] for row in copy.execute("pragma integrity_check")]
            if found != ["ok"]:
                raise DatabaseUnreadableError(f"{path} is damaged: {found[0]}. Nothing was changed.", path)
            if _row_counts(copy) != _row_counts(source):
                raise DestinationError(f"The backup of {path} is incomplete. Nothing was changed.", partial)
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _unused_name(path: Path) -> Path:
    timestamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = path.with_name(f"{path.name}.backup-{timestamp}")
    suffix = 1
    while target.exists():
        suffix += 1
        target = path.with_name(f"{path.name}.backup-{timestamp}-{suffix}")
    return target


def _row_counts(db: sqlite3.Connection) -> dict[str, int]:
    """Return the number of rows by table, without virtual tables: their rows are in other tables."""
    names = [
        name
        for (name,) in db.execute(
            "select name from sqlite_master where type = 'table' and sql not like 'create virtual%'"
        )
    ]
    quoted = {name: name.replace('"', '""') for name in names}
    return {
        name: db.execute(f'select count(*) from "{quoted[name]}"').fetchone()[0]  # noqa: S608 - quoted
        for name in names
    }


def plan(db: sqlite3.Connection) -> UpgradePlan:
    """Plan the new keys of every row, earliest first. Write nothing."""
    rows = sorted(_rows(db), key=lambda row: (_time_key(row.started_at), row.number))
    problems = list(_row_problems(rows)) + list(_malformed_json(db, rows))
    windows, window_of = _windows(rows)
    used: set[tuple[Any, str]] = set()
    ids: set[str] = set()
    duplicates: list[str] = []
    row_keys: list[_RowKeys] = []
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
        row_keys.append(_RowKeys(row.number, id_, external, window.id if window else None, _start_of(row)))
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
    names = {name.lower() for name in _table_columns(db, "conversations")}
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


def _windows(rows: Iterable[_Row]) -> tuple[list[_Window], dict[int, _Window]]:
    """Group rows into windows by session id and workspace. Rows without a workspace join the first window."""
    sessions: dict[str, dict[str, list[_Row]]] = {}
    for row in rows:
        if row.platform in _WINDOW_PLATFORMS:
            known = row.workspace_hash not in (None, "")
            hash_ = str(row.workspace_hash) if known else UNKNOWN_WORKSPACE
            session = f"workspace:{hash_}" if row.session_id in (None, "") else str(row.session_id)
            sessions.setdefault(session, {}).setdefault(hash_, []).append(row)
    windows: list[_Window] = []
    window_of: dict[int, _Window] = {}
    for session, by_workspace in sessions.items():
        unassigned = by_workspace.pop(UNKNOWN_WORKSPACE, []) if len(by_workspace) > 1 else []
        for index, (hash_, members) in enumerate(by_workspace.items()):
            window = _Window(f"{session}@{hash_}" if index else session, session, hash_)
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
    names = {name.lower() for name in _table_columns(db, "conversations")}
    labels = {row.number: row.label for row in rows}
    for column in filter(names.__contains__, JSON_COLUMNS):
        query = (
            f"select _rowid_ from conversations where {column} is not null"  # noqa: S608 - names are ours
            f" and iif(typeof({column}) = 'text', not json_valid({column}), 1)"
        )
        if found := tuple(labels[number] for (number,) in db.execute(query)):
            yield UpgradeProblem("malformed JSON", f"{column} is not JSON; copied unchanged", found)


def _orphans(db: sqlite3.Connection) -> _Orphans:
    return set(db.execute("pragma foreign_key_check"))


def _orphan_problems(orphans: _Orphans) -> list[UpgradeProblem]:
    by_tables: dict[tuple[str, str], list[str]] = {}
    for table, row, parent, _ in sorted(orphans, key=str):
        by_tables.setdefault((table, parent), []).append(f"{table} row {row}")
    return [
        UpgradeProblem("orphan", f"rows of {table} refer to a missing row of {parent}", tuple(rows))
        for (table, parent), rows in by_tables.items()
    ]


def _count_by_platform(db: sqlite3.Connection) -> dict[str, int]:
    return dict(db.execute("select platform, count(*) from conversations group by 1 order by 1").fetchall())


def _write_tables(db: sqlite3.Connection, planned: UpgradePlan) -> None:
    """Create the new tables in addition to the old one, and compare every value."""
    for statement in filter(str.strip, _WINDOWS.split(";\n")):
        db.execute(statement)
    db.executemany(
        "insert into cursor_sessions values (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                window.id,
                window.name,
                window.workspace_hash,
                window.workspace_name,
                window.workspace_path,
                window.started_at,
                None if window.is_open else window.ended_at,
                msgspec.json.encode(
                    {"session_id": window.session} if window.name != window.session else {}
                ).decode(),
            )
            for window in planned.windows
        ),
    )
    db.execute(
        "create temp table row_keys"
        " (row integer primary key, id text, external_id text, window text, started_at)"
    )
    db.executemany("insert into temp.row_keys values (?, ?, ?, ?, ?)", planned.row_keys)
    old = _table_columns(db, "conversations")
    copied = [name for name in old if name.lower() not in {*_PLANNED, "external_session_id", "started_at"}]
    extra = [_definition(name, *old[name]) for name in copied if name.lower() not in _COLUMNS]
    own = [f"{name} {type_}" for name, type_ in _COLUMNS.items()]
    db.execute(f"create table conversations_upgraded ({', '.join([*own, *extra])}, {_CONSTRAINTS})")
    names = [_quote(name) for name in copied]
    columns = ", ".join([*_PLANNED, "started_at", *names])
    values = ", ".join(
        [
            *(f"p.{name}" for name in _PLANNED.values()),
            "coalesce(c.started_at, p.started_at)",
            *(f"c.{name}" for name in names),
        ]
    )
    joined = "main.conversations c join temp.row_keys p on p.row = c._rowid_"
    db.execute(f"insert into conversations_upgraded ({columns}) select {values} from {joined} order by p.row")  # noqa: S608 - quoted
    differs = " or ".join(
        [
            "n.external_id is not p.external_id",
            "n.session_id is not p.window",
            "n.started_at is not coalesce(c.started_at, p.started_at)",
            *(f"n.{name} is not c.{name}" for name in names),
        ]
    )
    lost = db.execute(
        "select count(*) from main.conversations c left join temp.row_keys p on p.row = c._rowid_"  # noqa: S608 - quoted
        f" left join conversations_upgraded n on n.id = p.id where n.id is null or {differs}"
    ).fetchone()[0]
    if lost:
        raise _StoppedError(f"{pluralize(lost, 'row')} would have been changed")


def _definition(name: str, type_: str, notnull: bool, default: str | None) -> str:
    """Return the definition of a column that only this database has."""
    parts = [_quote(name), type_, "not null" if notnull else "", f"default ({default})" if default else ""]
    return " ".join(filter(None, parts))


def _quote(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _replace(db: sqlite3.Connection, planned: UpgradePlan) -> None:
    """Replace the old table. Recreate its indexes and triggers where possible."""
    own = db.execute(
        "select type, name, sql from sqlite_master where lower(tbl_name) = 'conversations'"
        " and type in ('index', 'trigger') and sql is not null"
    ).fetchall()
    db.execute("drop table main.conversations")
    db.execute("alter table main.conversations_upgraded rename to conversations")
    for name, on in _INDEXES.items():
        db.execute(f"create index {name} on {on}")
    for kind, name, sql in own:
        if name.lower() in _INDEXES:
            continue
        if "external_session_id" in sql.lower():
            planned.problems.append(_dropped(kind, name, "it uses external_session_id"))
            continue
        try:
            db.execute(sql)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT):
                raise
            planned.problems.append(_dropped(kind, name, str(error)))
    for kind, name in db.execute(
        "select type, name from sqlite_master where type in ('view', 'trigger')"
        " and lower(sql) like '%external!_session!_id%' escape '!'"
    ):
        reason = f"the {kind} {name} uses external_session_id, which is now external_id"
        planned.problems.append(UpgradeProblem(kind, reason))


def _dropped(kind: str, name: str, reason: str) -> UpgradeProblem:
    return UpgradeProblem(kind, f"the {kind} {name} of conversations was dropped: {reason}")


def _verify(db: sqlite3.Connection, rows: dict[str, int], orphans: _Orphans) -> None:
    """Check the result before the commit."""
    after = _count_by_platform(db)
    if after != rows:
        raise _StoppedError(f"the number of conversations would change from {rows} to {after}")
    if new := _orphans(db) - orphans:
        raise _StoppedError(f"{pluralize(len(new), 'row')} would refer to missing rows")
    for check in _CHECKS:
        if found := db.execute(check).fetchone():
            raise _StoppedError(f"the result would be invalid: {found[0]}")


class LegacyImport(Struct, frozen=True):
    """Counts of an import."""

    sessions: int
    known: int  # skipped: already in the archive
    kept_out: int  # skipped: forgotten, or in an excluded workspace
    windows: int  # new in the archive


def import_legacy(archive: Path, file: Path, exclusions: Exclusions) -> LegacyImport:
    """Import the conversations that the archive does not contain, in one transaction."""
    written_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    try:
        with closing(open_existing(file, mode="ro")) as other, closing(connect(archive)) as db:
            other.row_factory = sqlite3.Row
            other.execute("begin")
            with transaction(db):
                return _import(db, other, file.name, written_at, exclusions)
    except sqlite3.Error as error:
        raise DatabaseUnreadableError(
            f"{file} could not be imported: {error}. The archive was not changed.", file
        ) from error


def _import(
    db: sqlite3.Connection, other: sqlite3.Connection, name: str, written_at: datetime, exclusions: Exclusions
) -> LegacyImport:
    windows = {row["id"]: dict(row) for row in other.execute("select * from cursor_sessions")}
    window_ids: dict[str, str] = {}
    number = db.execute("select coalesce(max(number), 0) from conversations").fetchone()[0]
    imported = known = kept_out = new_windows = 0
    for row in map(dict, other.execute("select * from conversations order by started_at, id")):
        window = windows.get(row["session_id"], {})
        values = _values(row, window.get("workspace_path"), name, written_at)
        path = values["workspace_path"]
        if exclusions.is_excluded(Workspace(path) if path else None) or (
            (row["platform"], row["external_id"]) in exclusions.forgotten
        ):
            kept_out += 1
            continue
        if window and window["id"] not in window_ids:
            window_ids[window["id"]], is_new = _import_window(db, window, name, written_at)
            new_windows += is_new
        values |= {"session_id": window_ids.get(row["session_id"]), "number": number + 1}
        columns, marks = ", ".join(values), ", ".join("?" * len(values))
        done = db.execute(
            f"insert into conversations ({columns}) values ({marks})"  # noqa: S608 - names are ours
            " on conflict (external_id, platform) do nothing",
            list(values.values()),
        ).rowcount
        imported += done
        known += not done
        number += done
    return LegacyImport(imported, known, kept_out, new_windows)


def _import_window(
    db: sqlite3.Connection, row: dict[str, Any], name: str, written_at: datetime
) -> tuple[str, bool]:
    """Insert or extend a window. Return its id and whether it is new."""
    external = str(row["external_session_id"])
    known = db.execute("select id from cursor_sessions where external_session_id = ?", [external]).fetchone()
    started = from_value(row["started_at"]) or written_at
    ended = from_value(row.get("ended_at"))
    if known is not None:
        db.execute(
            "update cursor_sessions set started_at = min(started_at, ?),"
            " ended_at = coalesce(max(ended_at, ?), ended_at) where id = ?",
            [iso(started), iso(ended), known[0]],
        )
        return str(known[0]), False
    id_ = conversation_id(WINDOW_PLATFORM, external)
    hash_, named, path = _workspace(
        row.get("workspace_path"), row.get("workspace_hash"), row.get("workspace_name")
    )
    metadata = _decode(row.get("metadata"), dict) or {}
    db.execute(
        "insert into cursor_sessions values (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            id_,
            external,
            hash_,
            named,
            path,
            iso(started),
            iso(ended),
            _json(metadata | {"merged_from": name}),
        ],
    )
    return id_, True


def _workspace(path: Any, hash_: Any, name: Any) -> tuple[str, str | None, str | None]:
    """Return hash, name and path. Without a path, keep the other program's hash."""
    if isinstance(path, str) and path:
        workspace = Workspace(path)
        return workspace.hash, str(name) if name else workspace.name, path
    return str(hash_) if hash_ else UNKNOWN_WORKSPACE, str(name) if name else None, None


def _values(row: dict[str, Any], window_path: str | None, name: str, written_at: datetime) -> dict[str, Any]:
    """Return the values of a row. Values that do not fit their column go into the metadata."""
    parts = {column: _decode(row.get(column), type_) for column, type_ in _EXPECTED.items()}
    context, metadata = parts["context"] or {}, dict(parts["metadata"] or {})
    invalid = {
        f"merged_{column}": str(row[column])
        for column, value in parts.items()
        if value is None and row.get(column) is not None
    }
    started, ended = from_value(row["started_at"]), from_value(row.get("ended_at"))
    updated = max(filter(None, (started, ended)), default=written_at)
    path = context.get("workspace_path") or window_path
    hash_, named, path = _workspace(path, row.get("workspace_hash"), row.get("workspace_name"))
    metadata |= invalid | {
        "merged_from": name,
        "merged_id": str(row["id"]),
        "started_at_source": "stored" if started else "file",
        "reasons": ["imported from another program's database, which contains no messages"],
    }
    if row.get("workspace_hash") not in (None, hash_):
        metadata["merged_workspace_hash"] = str(row["workspace_hash"])
    tokens = row.get("total_tokens") or None  # 0 means that nothing was counted
    if tokens is None:
        metadata["are_tokens_unknown"] = True
    return {
        "id": conversation_id(row["platform"], row["external_id"]),
        "external_id": row["external_id"],
        "platform": row["platform"],
        "workspace_hash": hash_,
        "workspace_name": named,
        "workspace_path": path,
        "started_at": iso(started or written_at),
        "ended_at": iso(updated),
        "updated_at": iso(updated),
        "context": _json(context),
        "metadata": _json(metadata),
        "tool_sequence": _json(parts["tool_sequence"] or []),
        "acceptance_decisions": _json(parts["acceptance_decisions"] or []),
        "interaction_count": _to_int(row.get("interaction_count")),
        "acceptance_rate": _to_float(row.get("acceptance_rate")),
        "total_tokens": tokens if isinstance(tokens, int) else None,
        "total_changes": _to_int(row.get("total_changes")),
        "source": _SOURCES.get(row["platform"]),  # null violates the schema, and the import fails
        "completeness": "lossy",
        "visibility": "listed",
    }


def _decode(value: Any, type_: type) -> Any:
    """Return the decoded JSON if it has this type, else None."""
    try:
        return msgspec.json.decode(value, type=type_) if isinstance(value, str) else None
    except msgspec.DecodeError:
        return None


def _to_int(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _to_float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
