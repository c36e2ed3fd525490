"""Conversations of an upgraded database, taken into the archive."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from backscroll.archive import Archive
from backscroll.archive.maintenance.legacy_import import LegacyImport, import_legacy
from backscroll.archive.maintenance.legacy_upgrade import upgrade_legacy
from backscroll.archive.write.exclusions import Exclusions
from backscroll.errors import DatabaseUnreadableError
from backscroll.model import Filter, SessionSummary, workspace_hash
from backscroll.testing.claude_code import Transcript
from tests.archive.old_databases import claude, contents, conversation, query, write_old
from tests.archive.synced_archive import SyncedArchive

SESSION = "5e551011-0000-4000-8000-0000000000aa"


class Both:
    """An archive and a database beside it."""

    def __init__(self, folder: Path) -> None:
        self.archive = folder / "home" / "archive.db"
        self.file = folder / "telemetry.db"
        self.root = folder / "claude"
        self.root.mkdir()
        self.excluded: tuple[str, ...] = ()

    def import_legacy(self, *rows: dict[str, Any]) -> LegacyImport:
        if not self.file.exists():
            upgrade_legacy(write_old(self.file, rows))
        archive = Archive(self.archive, exclusions=Exclusions(patterns=self.excluded))
        exclusions = archive.units.exclusions
        archive.close()
        return import_legacy(self.archive, self.file, exclusions)

    def sessions(self) -> dict[str, SessionSummary]:
        archive = Archive(self.archive)
        found = {one.id: one for one in archive.sessions.page(Filter(), limit=100, offset=0)}
        archive.close()
        return found

    def metadata(self, id_: str) -> dict[str, Any]:
        ((text,),) = query(self.archive, f"select metadata from conversations where external_id = '{id_}'")  # noqa: S608
        told: dict[str, Any] = json.loads(text)
        return told

    def sync(self) -> None:
        kept = SyncedArchive("claude-code", self.root, self.archive.parent)
        kept.sync()
        kept.archive.close()


@pytest.fixture
def both(tmp_path: Path) -> Both:
    return Both(tmp_path)


def test_conversations_are_listed_as_sessions_without_messages(both: Both) -> None:
    assert both.import_legacy(conversation(1), claude(2)) == LegacyImport(
        sessions=2, known=0, kept_out=0, windows=1
    )
    found = both.sessions()
    assert list(found) == ["claude-2", "composer-1"]
    one = found["composer-1"]
    assert (one.ref, one.platform, one.completeness) == ("cursor:composer-1", "cursor", "lossy")
    assert (one.workspace_path, one.workspace_name, one.message_count) == ("/home/zoe/ferry", "ferry", 0)
    assert (one.interaction_count, one.acceptance_rate, one.total_tokens, one.total_changes) == (
        3,
        0.5,
        1200,
        40,
    )
    assert not one.is_gone
    told = both.metadata("composer-1")
    assert (told["merged_from"], told["merged_id"], told["mode"]) == ("telemetry.db", "id-1", "agent")
    archive = Archive(both.archive)
    assert list(archive.messages.of_session(one)) == []
    assert archive.maintenance.verify() == []
    archive.close()


def test_a_session_of_the_archive_is_not_overwritten(both: Both) -> None:
    Transcript(SESSION).user("why is the clock wrong").assistant("it is summer").write(both.root)
    both.sync()
    before = contents(both.archive)
    adopted = both.import_legacy(claude(1, external_session_id=SESSION, total_tokens=9))
    assert adopted == LegacyImport(sessions=0, known=1, kept_out=0, windows=0)
    assert contents(both.archive) == before


def test_a_tools_own_file_takes_the_place_of_what_was_adopted(both: Both) -> None:
    both.import_legacy(claude(1, external_session_id=SESSION))
    Transcript(SESSION).user("why is the clock wrong").assistant("it is summer").write(both.root)
    both.sync()
    one = both.sessions()[SESSION]
    assert (one.message_count, one.completeness) == (2, "complete")


def test_adopting_twice_changes_nothing(both: Both) -> None:
    both.import_legacy(conversation(1), claude(2))
    before = contents(both.archive)
    assert both.import_legacy() == LegacyImport(sessions=0, known=2, kept_out=0, windows=0)
    assert contents(both.archive) == before


def test_a_window_that_the_archive_has_grows(both: Both) -> None:
    both.import_legacy(conversation(5))
    both.file.unlink()
    assert both.import_legacy(conversation(1), conversation(9)) == LegacyImport(
        sessions=2, known=0, kept_out=0, windows=0
    )
    assert query(
        both.archive, "select external_session_id, workspace_hash, started_at, ended_at from cursor_sessions"
    ) == [
        ("curs_1", workspace_hash("/home/zoe/ferry"), "2026-03-02T10:00:00.000Z", "2026-03-10T11:00:00.000Z")
    ]
    assert query(both.archive, "pragma foreign_key_check") == []


def test_times_of_every_spelling_become_the_archives(both: Both) -> None:
    both.import_legacy(
        claude(1, started_at=1772445600000, ended_at="2026-03-02 11:00:00"),
        claude(2, started_at="some day", ended_at=None),
    )
    found = both.sessions()
    assert found["claude-1"].created_at == found["claude-1"].created_at
    rows = query(
        both.archive, "select started_at, ended_at from conversations where external_id = 'claude-1'"
    )
    assert rows == [("2026-03-02T10:00:00.000Z", "2026-03-02T11:00:00.000Z")]
    assert both.metadata("claude-1")["started_at_source"] == "stored"
    assert both.metadata("claude-2")["started_at_source"] == "file"


def test_what_does_not_fit_is_in_the_metadata(both: Both) -> None:
    both.import_legacy(
        claude(1, context="{cut", tool_sequence="{}", total_tokens=0, workspace_hash="theirs"),
        claude(2, workspace_hash="theirs"),
    )
    told = both.metadata("claude-1")
    assert (told["merged_context"], told["merged_tool_sequence"]) == ("{cut", "{}")
    assert told["are_tokens_unknown"]
    assert both.sessions()["claude-1"].total_tokens is None
    assert both.metadata("claude-2")["merged_workspace_hash"] == "theirs"
    assert query(both.archive, "select workspace_hash, context from conversations order by external_id")[
        0
    ] == (
        "theirs",
        "{}",
    )


def test_a_database_that_cannot_be_taken_leaves_the_archive_as_it_was(both: Both) -> None:
    both.import_legacy(claude(1))
    before = contents(both.archive)
    db = sqlite3.connect(both.file)
    db.executescript(
        "drop table conversations;"
        "create table conversations (id, session_id, external_id, platform, started_at);"
        "insert into conversations values ('a', null, 'fine', 'claude_code', '2026-01-01'),"
        " ('b', null, 'odd', 'windsurf', '2026-01-02');"
    )
    db.close()
    with pytest.raises(DatabaseUnreadableError, match="The archive is as it was"):
        both.import_legacy()
    assert contents(both.archive) == before


def test_what_was_forgotten_does_not_come_back(both: Both) -> None:
    both.import_legacy(conversation(1), claude(2))
    archive = Archive(both.archive)
    archive.maintenance.forget(both.sessions()["composer-1"])
    archive.close()
    assert both.import_legacy() == LegacyImport(sessions=0, known=1, kept_out=1, windows=0)
    assert list(both.sessions()) == ["claude-2"]
    assert query(both.archive, "select * from cursor_sessions") == []


def test_an_excluded_workspace_stays_out(both: Both) -> None:
    both.excluded = ("/home/zoe/ferry",)
    shop = json.dumps({"workspace_path": "/home/zoe/shop"})
    adopted = both.import_legacy(conversation(1), claude(2, context=shop))
    assert adopted == LegacyImport(sessions=1, known=0, kept_out=1, windows=0)
    assert list(both.sessions()) == ["claude-2"]
    assert query(both.archive, "select * from cursor_sessions") == []
