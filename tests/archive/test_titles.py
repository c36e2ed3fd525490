"""Titles that one file has for the session of another one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.index.store import Index
from backscroll.ingest.originals import rebuild
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


def _write_in_two_folders(root: Path, *, is_first_newer: bool, title: str | None = None) -> None:
    """Write a session whose second half is in another folder."""
    session = Transcript(NAMED).user("where is the quay?").assistant("behind the dike")
    count = len(session.records)
    session.wait(3600).user("and the lamp?").assistant("on the pier")
    if title is not None:
        session.ai_title(title)
    path = session.write(root)
    lines = path.read_bytes().splitlines(keepends=True)
    names = ["-home-zoe-quay", "-home-zoe-shore"]
    path.unlink()
    for name, half in zip(names[:: -1 if is_first_newer else 1], (lines[:count], lines[count:]), strict=True):
        file = root / "projects" / name / path.name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"".join(half))


@pytest.mark.parametrize("is_first_newer", [True, False])
@pytest.mark.parametrize("title", ["Lights of the shore", None])
def test_a_session_in_two_folders_starts_with_its_first_prompt(
    synced: SyncedArchive, is_first_newer: bool, title: str | None
) -> None:
    _write_in_two_folders(synced.root, is_first_newer=is_first_newer, title=title)
    synced.sync()
    (summary,) = synced.summaries()
    first, *_, last = synced.messages(NAMED)
    assert summary.title == (title or "where is the quay?")
    assert summary.first_message_preview == "where is the quay?"
    assert (summary.created_at, summary.updated_at) == (first.timestamp, last.timestamp)
    assert summary.message_count == 4


def test_a_removed_first_prompt_is_not_the_title(synced: SyncedArchive) -> None:
    path = Transcript(NAMED).user("first").wait(3600).user("second").assistant("yes").write(synced.root)
    synced.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    synced.sync()
    (summary,) = synced.summaries()
    assert (summary.title, summary.first_message_preview) == ("second", "second")
