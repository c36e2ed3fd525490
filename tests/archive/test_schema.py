"""The unified schema, and queries that other programs run on it."""

import sqlite3
from pathlib import Path

import pytest

from backscroll.archive.archive import Archive
from backscroll.archive.connection import MIGRATIONS, SCHEMA_VERSION
from backscroll.errors import ArchiveError
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript
from tests.archive.synced_archive import SyncedArchive


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    home = tmp_path / "home"
    session = Transcript("5e551011-0000-4000-8000-0000000000aa").user("a").assistant("b")
    session.write(tmp_path / "claude")
    SyncedArchive("claude-code", tmp_path / "claude", home).sync()
    ide = cursor.Home(tmp_path / "cursor")
    for name in ("one", "two"):
        ide.composer([cursor.user(name), cursor.assistant("yes")], workspace=cursor.SHOP, name=name)
    ide.write()
    SyncedArchive("cursor", tmp_path / "cursor", home).sync()
    db = sqlite3.connect(home / "archive.db")
    db.row_factory = sqlite3.Row
    return db


def test_a_claude_conversation_is_found_by_its_id(db: sqlite3.Connection) -> None:
    (row,) = db.execute(
        "SELECT * FROM conversations WHERE external_id = ? AND platform = 'claude_code'",
        ["5e551011-0000-4000-8000-0000000000aa"],
    ).fetchall()
    assert row["session_id"] is None
    assert (row["interaction_count"], row["title"]) == (1, "a")
    rows = db.execute(
        "SELECT * FROM conversations WHERE platform = 'claude_code' AND workspace_hash = ?"
        " ORDER BY started_at DESC",
        [row["workspace_hash"]],
    )
    assert len(rows.fetchall()) == 1


def test_a_window_contains_its_conversations(db: sqlite3.Connection) -> None:
    (window,) = db.execute("SELECT * FROM cursor_sessions").fetchall()
    rows = db.execute(
        "SELECT c.* FROM conversations c WHERE c.session_id = ? AND c.platform = 'cursor'"
        " ORDER BY c.started_at ASC",
        [window["id"]],
    ).fetchall()
    assert [row["title"] for row in rows] == ["one", "two"]
    (totals,) = db.execute(
        "SELECT s.*, COUNT(c.id) as conversation_count, SUM(c.total_tokens) as total_tokens,"
        " SUM(c.interaction_count) as total_interactions FROM cursor_sessions s"
        " LEFT JOIN conversations c ON c.session_id = s.id WHERE s.external_session_id = ? GROUP BY s.id",
        [window["external_session_id"]],
    ).fetchall()
    assert (totals["conversation_count"], totals["total_interactions"]) == (2, 2)
    assert window["external_session_id"].startswith("workspace:")


def test_one_query_returns_conversations_of_both_platforms(db: sqlite3.Connection) -> None:
    rows = db.execute("SELECT * FROM conversations ORDER BY started_at DESC LIMIT 50").fetchall()
    assert {row["platform"] for row in rows} == {"claude_code", "cursor"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM conversations WHERE (platform = 'cursor' AND session_id IS NULL) OR"
        " (platform = 'claude_code' AND session_id IS NOT NULL)",
        "SELECT c.* FROM conversations c LEFT JOIN cursor_sessions s ON c.session_id = s.id"
        " WHERE c.platform = 'cursor' AND s.id IS NULL",
        "SELECT external_id, platform, COUNT(*) as count FROM conversations GROUP BY external_id, platform"
        " HAVING count > 1",
        "PRAGMA foreign_key_check",
    ],
)
def test_queries_for_invalid_rows_return_nothing(db: sqlite3.Connection, query: str) -> None:
    assert db.execute(query).fetchall() == []


@pytest.mark.parametrize(("platform", "window"), [("cursor", None), ("claude_code", "x")])
def test_the_schema_rejects_a_window_that_does_not_fit_the_platform(
    db: sqlite3.Connection, platform: str, window: str | None
) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        db.execute(
            "insert into conversations (id, session_id, external_id, platform, started_at, number, source)"
            " values ('i', ?, 'e', ?, '2026-01-01', 99, 's')",
            [window, platform],
        )


def test_an_archive_of_a_newer_version_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    Archive(path).close()
    db = sqlite3.connect(path)
    db.execute("pragma user_version = 99")
    db.close()
    with pytest.raises(ArchiveError, match="newer version"):
        Archive(path)


def test_a_file_that_is_not_an_archive_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    path.write_bytes(b"nonsense" * 1000)
    with pytest.raises(ArchiveError):
        Archive(path)


def test_the_migrations_are_numbered_without_a_gap() -> None:
    names = sorted(file.name for file in MIGRATIONS.iterdir())
    assert [name[:5] for name in names] == [f"{number:04}_" for number in range(1, SCHEMA_VERSION + 1)]


def test_a_new_archive_has_the_version_of_the_last_migration(db: sqlite3.Connection) -> None:
    last = max(int(file.name[:4]) for file in MIGRATIONS.iterdir())
    assert db.execute("pragma user_version").fetchone()[0] == last == SCHEMA_VERSION


def test_an_archive_of_a_development_version_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    db = sqlite3.connect(path)
    db.execute("create table account (number integer primary key)")
    db.execute("pragma user_version = 17")
    db.close()
    with pytest.raises(ArchiveError, match="development version"):
        Archive(path)


def test_every_migration_is_recorded(db: sqlite3.Connection) -> None:
    rows = db.execute("select id, name from migration order by id").fetchall()
    assert [tuple(row) for row in rows] == [
        (1, "0001_initial"),
        (2, "0002_reported_usage"),
        (3, "0003_message_copy_index"),
        (4, "0004_commit_links"),
        (5, "0005_hooks"),
        (6, "0006_last_record"),
        (7, "0007_undone_copies"),
        (8, "0008_folder_maps"),
        (9, "0009_folder_moves"),
        (10, "0010_manual_links"),
        (11, "0011_prices"),
        (12, "0012_windows_paths"),
    ]


def test_views_return_messages_with_strings_instead_of_ids(db: sqlite3.Connection) -> None:
    rows = db.execute(
        "select role, position from messages where platform = 'claude_code' order by position"
    ).fetchall()
    assert [tuple(row) for row in rows] == [("user", 0), ("assistant", 1)]
    assert db.execute("select count(*) from tool_calls").fetchone()[0] == 0


def test_finding_sessions_with_copies_reads_only_the_copied_messages(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive.db")
    statements: list[str] = []
    archive._db.set_trace_callback(statements.append)
    assert archive.sessions.with_copied_messages() == {}
    archive._db.set_trace_callback(None)
    (query,) = [statement for statement in statements if "copied_from_string_id" in statement]
    steps = [row[-1] for row in archive._db.execute(f"explain query plan {query}")]
    assert any("message_copy" in step for step in steps)
    assert "SCAN message" not in steps
    archive.close()
