"""Upgrade another program's database from the old unified schema to the one with windows.

Create a verified backup, then change everything in one transaction and check the result before the commit. If
anything fails, the database is unchanged.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
from msgspec import Struct

from backscroll.archive.maintenance import legacy_schema
from backscroll.archive.maintenance.legacy_backup import create_backup, open_existing
from backscroll.archive.maintenance.legacy_schema import (
    UpgradePlan,
    UpgradeProblem,
    detect_schema,
    table_columns,
)
from backscroll.errors import (
    BackscrollError,
    DatabaseLockedError,
    DatabaseNotFoundError,
    DatabaseUnreadableError,
    DestinationError,
)
from backscroll.model.text import pluralize

__all__ = ["UpgradeResult", "upgrade_legacy"]

_BUSY_TIMEOUT_SECONDS = 5.0

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
_PLANNED = {"id": "id", "session_id": "window", "external_id": "external_id"}  # column: column of the plan

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


class UpgradeResult(Struct, frozen=True):
    """Outcome of an upgrade."""

    path: str
    is_changed: bool  # False: it was already upgraded
    backup: str | None = None
    rows: dict[str, int] = {}  # conversations by platform
    windows: int = 0
    problems: tuple[UpgradeProblem, ...] = ()


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
            if detect_schema(db, path) == "upgraded":
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
        if detect_schema(db, path) == "upgraded":  # by another process in the meantime
            db.execute("rollback")
            return UpgradeResult(str(path), is_changed=False)
        backups.append(create_backup(path))
        planned = legacy_schema.plan(db)
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


def _count_by_platform(db: sqlite3.Connection) -> dict[str, int]:
    return dict(db.execute("select platform, count(*) from conversations group by 1 order by 1").fetchall())


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


def _quote(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


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
    old = table_columns(db, "conversations")
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
