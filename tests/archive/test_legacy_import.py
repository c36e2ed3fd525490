"""Import of conversations from an upgraded legacy database."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from backscroll.archive.archive import Archive
from backscroll.archive.maintenance.legacy import LegacyImport, import_legacy, upgrade_legacy
from backscroll.archive.write.exclusions import Exclusions
from backscroll.errors import DatabaseUnreadableError
from backscroll.model.session import Filter, SessionSummary
from backscroll.model.workspace import workspace_hash
from backscroll.testing.claude_code import Transcript
from tests.archive.legacy_databases import claude_conversation, conversation, dump, query, write_legacy
from tests.archive.synced_archive import SyncedArchive

SESSION = "5e551011-0000-4000-8000-0000000000aa"


class ImportSetup:
    """Archive, legacy database and Claude Code root."""

    def __init__(self, folder: Path) -> None:
        self.archive = folder / "home" / "archive.db"
        self.file = folder / "telemetry.db"
        self.root = folder / "claude"
        self.root.mkdir()
        self.excluded: tuple[str, ...] = ()

    def import_legacy(self, *rows: dict[str, Any]) -> LegacyImport:
        if not self.file.exists():
            upgrade_legacy(write_legacy(self.file, rows))
        archive = Archive(self.archive, exclusions=Exclusions(patterns=self.excluded))
        exclusions = archive.units.exclusions
        archive.close()
        return import_legacy(self.archive, self.file, exclusions)

    def sessions(self) -> dict[str, SessionSummary]:
        archive = Archive(self.archive)
        summaries = {summary.id: summary for summary in archive.sessions.page(Filter(), limit=100, offset=0)}
        archive.close()
        return summaries

    def metadata(self, id_: str) -> dict[str, Any]:
        ((text,),) = query(self.archive, f"select metadata from conversations where external_id = '{id_}'")  # noqa: S608
        metadata: dict[str, Any] = json.loads(text)
        return metadata

    def sync(self) -> None:
        synced = SyncedArchive("claude-code", self.root, self.archive.parent)
        synced.sync()
        synced.archive.close()


@pytest.fixture
def setup(tmp_path: Path) -> ImportSetup:
    return ImportSetup(tmp_path)


def test_imported_conversations_are_listed_as_sessions_without_messages(setup: ImportSetup) -> None:
    assert setup.import_legacy(conversation(1), claude_conversation(2)) == LegacyImport(
        sessions=2, known=0, kept_out=0, windows=1
    )
    sessions = setup.sessions()
    assert list(sessions) == ["claude-2", "composer-1"]
    session = sessions["composer-1"]
    assert (session.ref, session.platform, session.completeness) == ("cursor:composer-1", "cursor", "lossy")
    assert (session.workspace_path, session.workspace_name, session.message_count) == (
        "/home/zoe/ferry",
        "ferry",
        0,
    )
    assert (
        session.interaction_count,
        session.acceptance_rate,
        session.total_tokens,
        session.total_changes,
    ) == (
        3,
        0.5,
        1200,
        40,
    )
    assert not session.is_gone
    metadata = setup.metadata("composer-1")
    assert (metadata["merged_from"], metadata["merged_id"], metadata["mode"]) == (
        "telemetry.db",
        "id-1",
        "agent",
    )
    archive = Archive(setup.archive)
    assert list(archive.messages.of_session(session)) == []
    assert archive.maintenance.verify() == []
    archive.close()


def test_an_archived_session_is_not_overwritten(setup: ImportSetup) -> None:
    Transcript(SESSION).user("why is the clock wrong").assistant("it is summer").write(setup.root)
    setup.sync()
    before = dump(setup.archive)
    imported = setup.import_legacy(claude_conversation(1, external_session_id=SESSION, total_tokens=9))
    assert imported == LegacyImport(sessions=0, known=1, kept_out=0, windows=0)
    assert dump(setup.archive) == before


def test_a_session_read_from_its_file_replaces_the_imported_one(setup: ImportSetup) -> None:
    setup.import_legacy(claude_conversation(1, external_session_id=SESSION))
    Transcript(SESSION).user("why is the clock wrong").assistant("it is summer").write(setup.root)
    setup.sync()
    session = setup.sessions()[SESSION]
    assert (session.message_count, session.completeness) == (2, "complete")


def test_importing_twice_changes_nothing(setup: ImportSetup) -> None:
    setup.import_legacy(conversation(1), claude_conversation(2))
    before = dump(setup.archive)
    assert setup.import_legacy() == LegacyImport(sessions=0, known=2, kept_out=0, windows=0)
    assert dump(setup.archive) == before


def test_an_archived_window_is_extended_by_imported_conversations(setup: ImportSetup) -> None:
    setup.import_legacy(conversation(5))
    setup.file.unlink()
    assert setup.import_legacy(conversation(1), conversation(9)) == LegacyImport(
        sessions=2, known=0, kept_out=0, windows=0
    )
    assert query(
        setup.archive, "select external_session_id, workspace_hash, started_at, ended_at from cursor_sessions"
    ) == [
        ("curs_1", workspace_hash("/home/zoe/ferry"), "2026-03-02T10:00:00.000Z", "2026-03-10T11:00:00.000Z")
    ]
    assert query(setup.archive, "pragma foreign_key_check") == []


def test_times_of_every_format_are_converted(setup: ImportSetup) -> None:
    setup.import_legacy(
        claude_conversation(1, started_at=1772445600000, ended_at="2026-03-02 11:00:00"),
        claude_conversation(2, started_at="some day", ended_at=None),
    )
    sessions = setup.sessions()
    assert sessions["claude-1"].created_at == sessions["claude-1"].created_at
    rows = query(
        setup.archive, "select started_at, ended_at from conversations where external_id = 'claude-1'"
    )
    assert rows == [("2026-03-02T10:00:00.000Z", "2026-03-02T11:00:00.000Z")]
    assert setup.metadata("claude-1")["started_at_source"] == "stored"
    assert setup.metadata("claude-2")["started_at_source"] == "file"


def test_values_without_a_column_are_stored_in_the_metadata(setup: ImportSetup) -> None:
    setup.import_legacy(
        claude_conversation(1, context="{cut", tool_sequence="{}", total_tokens=0, workspace_hash="theirs"),
        claude_conversation(2, workspace_hash="theirs"),
    )
    metadata = setup.metadata("claude-1")
    assert (metadata["merged_context"], metadata["merged_tool_sequence"]) == ("{cut", "{}")
    assert metadata["are_tokens_unknown"]
    assert setup.sessions()["claude-1"].total_tokens is None
    assert setup.metadata("claude-2")["merged_workspace_hash"] == "theirs"
    assert query(setup.archive, "select workspace_hash, context from conversations order by external_id")[
        0
    ] == (
        "theirs",
        "{}",
    )


def test_a_failed_import_leaves_the_archive_unchanged(setup: ImportSetup) -> None:
    setup.import_legacy(claude_conversation(1))
    before = dump(setup.archive)
    db = sqlite3.connect(setup.file)
    db.executescript(
        "drop table conversations;"
        "create table conversations (id, session_id, external_id, platform, started_at);"
        "insert into conversations values ('a', null, 'fine', 'claude_code', '2026-01-01'),"
        " ('b', null, 'odd', 'windsurf', '2026-01-02');"
    )
    db.close()
    with pytest.raises(DatabaseUnreadableError, match="The archive was not changed"):
        setup.import_legacy()
    assert dump(setup.archive) == before


def test_a_forgotten_session_is_not_imported_again(setup: ImportSetup) -> None:
    setup.import_legacy(conversation(1), claude_conversation(2))
    archive = Archive(setup.archive)
    archive.maintenance.forget(setup.sessions()["composer-1"])
    archive.close()
    assert setup.import_legacy() == LegacyImport(sessions=0, known=1, kept_out=1, windows=0)
    assert list(setup.sessions()) == ["claude-2"]
    assert query(setup.archive, "select * from cursor_sessions") == []


def test_conversations_of_an_excluded_workspace_are_not_imported(setup: ImportSetup) -> None:
    setup.excluded = ("/home/zoe/ferry",)
    shop = json.dumps({"workspace_path": "/home/zoe/shop"})
    imported = setup.import_legacy(conversation(1), claude_conversation(2, context=shop))
    assert imported == LegacyImport(sessions=1, known=0, kept_out=1, windows=0)
    assert list(setup.sessions()) == ["claude-2"]
    assert query(setup.archive, "select * from cursor_sessions") == []
