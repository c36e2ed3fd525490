"""Titles that one file has for the session of another one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.index import Index
from backscroll.ingest.rebuild import rebuild
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.archive.synced_archive import SyncedArchive

NAMED = "10000000-0000-4000-8000-000000000001"
NAMING = "20000000-0000-4000-8000-000000000002"


@pytest.fixture
def synced(tmp_path: Path) -> SyncedArchive:
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


def _unfinished() -> Transcript:
    """Return a session that ends with the result of a call, as after ``--max-turns 1``."""
    return Transcript(NAMED, version="1.0.69").user("go").run(tool_calls.bash("make", "done"))


def _naming(session: Transcript) -> Transcript:
    other = Transcript(NAMING, version="1.0.69", seed=2)
    return other.summary("Building the ferry", session.last_uuid).user("else").assistant("yes")


def _titles(synced: SyncedArchive) -> dict[str, str | None]:
    return {summary.id: summary.title for summary in synced.summaries()}


@pytest.mark.parametrize("is_named_first", [True, False])
def test_a_title_for_the_last_result_is_the_title_of_the_session(
    synced: SyncedArchive, is_named_first: bool
) -> None:
    session = _unfinished()
    files = [session, _naming(session)]
    for one in files if is_named_first else reversed(files):
        one.write(synced.root)
        synced.sync()
    assert _titles(synced) == {NAMED: "Building the ferry", NAMING: "else"}


def test_a_title_for_the_last_result_survives_a_rebuild_without_the_files(synced: SyncedArchive) -> None:
    session = _unfinished()
    paths = [session.write(synced.root), _naming(session).write(synced.root)]
    synced.sync()
    for path in paths:
        path.unlink()
    synced.sync()
    rebuild(synced.archive, Index(synced.archive.path.with_name("index")))
    assert _titles(synced)[NAMED] == "Building the ferry"


def test_a_title_for_the_last_result_is_forgotten_with_the_session(synced: SyncedArchive) -> None:
    session = _unfinished()
    session.write(synced.root)
    _naming(session).write(synced.root)
    synced.sync()
    (summary,) = synced.archive.sessions.find(NAMED)
    synced.archive.maintenance.forget(summary)
    with closing(sqlite3.connect(synced.archive.path)) as db:
        assert db.execute("select title from title_hint").fetchall() == []


def test_a_result_that_is_no_longer_the_last_line_names_no_session(synced: SyncedArchive) -> None:
    session = _unfinished()
    naming = _naming(session)
    session.write(synced.root)
    synced.sync()
    session.assistant("Done.").write(synced.root)
    naming.write(synced.root)
    synced.sync()
    assert _titles(synced)[NAMED] == "go"
