"""Rebuild from stored originals, and open archives of every schema version."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.connection import SCHEMA_VERSION
from backscroll.index.store import Index
from backscroll.ingest.originals import Rebuilt, rebuild
from backscroll.model.message import Message
from backscroll.model.store import Unit
from backscroll.model.stream import Checkpoint, Item
from backscroll.sources import session_files
from backscroll.sources.claude_code import ClaudeCode
from backscroll.sources.claude_code.transcript.copies import Conversation
from backscroll.sources.cursor.database import keys
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript, fork_session, repeat_conversation, tool_calls
from tests.archive.cursor_rows import execute, synced_cursor_home
from tests.archive.synced_archive import SyncedArchive
from tests.builders.claude_code.generations import GENERATIONS
from tests.builders.cursor_cli.history import write_history as write_cursor_cli_history

ARCHIVES = Path(__file__).parent.parent / "archives"
ONE = "5e551011-0000-4000-8000-0000000000aa"


def _rebuild(synced: SyncedArchive) -> Rebuilt:
    return rebuild(synced.archive, Index(synced.archive.path.with_name("index")))


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_rebuild_gives_the_same_content(generation: str, is_gone: bool, tmp_path: Path) -> None:
    root = tmp_path / "root"
    GENERATIONS[generation](root, 0)
    synced = SyncedArchive("claude-code", root, tmp_path / "home")
    synced.sync()
    if is_gone:
        shutil.rmtree(root)
        root.mkdir()
        synced.sync()
    before = synced.content()
    gone = [summary.is_gone for summary in synced.summaries()]
    rebuilt = _rebuild(synced)
    assert rebuilt.units or rebuilt.kept
    assert is_gone or not rebuilt.kept
    assert synced.content() == before
    assert [summary.is_gone for summary in synced.summaries()] == gone
    assert synced.archive.maintenance.verify() == []
    assert synced.sync().changed == 0


def test_originals_of_deleted_files_are_parsed_by_the_current_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    deleted = Transcript(ONE).user("first").assistant("one")
    present = Transcript(seed=2).user("second").assistant("two")
    path = deleted.write(synced.root)
    present.write(synced.root)
    synced.sync()
    path.unlink()
    synced.sync()
    read = ClaudeCode.read

    def read_changed(self: ClaudeCode, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        for item in read(self, unit, since):
            if isinstance(item, Message):
                item = replace(item, id=f"{item.id}-changed", content=item.content + "!")
            yield item

    monkeypatch.setattr(ClaudeCode, "read", read_changed)
    rebuilt = _rebuild(synced)
    assert (rebuilt.units, rebuilt.kept, rebuilt.sessions) == (2, 0, 2)
    assert [m.content for m in synced.messages(ONE)] == ["first!", "one!"]
    assert [m.origin.path for m in synced.messages(ONE)] == [str(path)] * 2
    assert [m.content for m in synced.messages(present.session_id)] == ["second!", "two!"]


def test_a_rebuild_removes_messages_of_a_deleted_file_that_the_reader_no_longer_emits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE, version="1.0.69").user("first").assistant("one")
    path = repeat_conversation(session).user("second").assistant("two").write(synced.root)
    with monkeypatch.context() as older_reader:
        older_reader.setattr(Conversation, "find_original", lambda *_: -1)
        synced.sync()
    path.unlink()
    synced.sync()
    assert [m.content for m in synced.messages(ONE)] == ["first", "one", "first", "one", "second", "two"]
    rebuilt = _rebuild(synced)
    assert (rebuilt.units, rebuilt.kept) == (1, 0)
    assert [m.content for m in synced.messages(ONE)] == ["first", "one", "second", "two"]


def test_a_rebuild_without_the_files_replaces_derived_data_of_an_older_version(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    first = Transcript(ONE, version="2.1.212").user("go").run(tool_calls.bash("ls", "a.py")).assistant("one")
    second = fork_session(first, "and then?", session_id="00000000-0000-4000-8000-000000000000")
    paths = [first.write(synced.root), second.assistant("two").write(synced.root)]
    synced.sync()
    for path in paths:
        path.unlink()
    synced.sync()
    before = synced.content()
    with closing(sqlite3.connect(synced.archive.path)) as db, db:  # an older version did not know the copies
        db.execute("update message set copied_from_string_id = null")
        db.execute("update response set is_copy = 1 - is_copy")
        db.execute("update conversations set total_tokens = 1, models = '[]', interaction_count = 9")
        db.execute("delete from activity_rollup")
    synced.archive.close()
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    assert synced.content() != before
    assert _rebuild(synced).kept == 0
    assert synced.content() == before
    assert synced.archive.maintenance.verify() == []


def test_a_rebuild_keeps_results_whose_file_is_deleted_and_was_too_large_to_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_files, "MAX_FILE_BYTES", 1000)
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE).user("read it all")
    session.spill(tool_calls.bash("cat long.txt"), "a long line\n" * 5000)
    path = session.write(synced.root)
    synced.sync()
    results = [m.tool.result for m in synced.messages(ONE) if m.tool]
    assert any(result and len(result) > 50_000 for result in results)
    shutil.rmtree(path.parent)
    synced.sync()
    assert _rebuild(synced).kept == 1
    assert [m.tool.result for m in synced.messages(ONE) if m.tool] == results


def test_a_rebuild_keeps_messages_removed_by_a_rewrite(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    path = Transcript(ONE).user("first").assistant("one").user("second").assistant("two").write(synced.root)
    synced.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    synced.sync()
    _rebuild(synced)
    assert [m.content for m in synced.messages(ONE)] == ["first", "one", "second", "two"]


def test_a_session_with_an_emptied_file_is_still_gone_after_a_rebuild(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    path = Transcript(ONE).user("first").assistant("one").write(synced.root)
    synced.sync()
    path.write_bytes(b"")
    synced.sync()
    before = synced.content()
    assert _rebuild(synced).kept == 1
    assert synced.content() == before
    assert [summary.is_gone for summary in synced.summaries()] == [True]


def test_a_session_with_only_subagent_files_can_be_rebuilt(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE, version="2.0.40").user("go").delegate("Look", "Seen.")
    session.agents[0].write(synced.root)
    synced.sync()
    before = synced.content()
    synced.archive.close()
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    assert _rebuild(synced).units == 1
    assert synced.content() == before


def test_a_rebuild_keeps_a_title_removed_by_a_rewrite(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE).user("first").assistant("one").ai_title("The quay")
    path = session.write(synced.root)
    synced.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    synced.sync()
    assert synced.summaries()[0].title == "The quay"
    _rebuild(synced)
    assert synced.summaries()[0].title == "The quay"


def test_rows_changed_without_a_new_row_id_do_not_replace_the_stored_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MAX_HASHED_BYTES", -1)  # as in a session that was written long ago
    home, synced, composer = synced_cursor_home(tmp_path)
    before = synced.content()
    # Cursor replaces a row, which gives it a new row id. An update in place keeps the id.
    statement = "update cursorDiskKV set value = replace(value, 'happens once', 'is off') where key = ?"
    execute(home, statement, composer.bubble_key(1))
    synced.sync()
    _rebuild(synced)
    assert synced.content() == before


def test_a_file_that_grew_before_a_rebuild_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE).user("first").assistant("one")
    session.write(synced.root)
    synced.sync()
    session.user("second").write(synced.root)
    _rebuild(synced)
    assert synced.sync().grew == 1
    assert [m.content for m in synced.messages(ONE)] == ["first", "one", "second"]


def test_sessions_of_a_deleted_database_are_rebuilt_from_their_rows(tmp_path: Path) -> None:
    ide = cursor.Home(tmp_path / "cursor")
    ide.composer([cursor.user("precious"), cursor.assistant("yes")], id=ONE, name="kept")
    ide.write()
    synced = SyncedArchive("cursor", tmp_path / "cursor", tmp_path / "home")
    synced.sync()
    before = synced.content()
    shutil.rmtree(tmp_path / "cursor")
    rebuilt = _rebuild(synced)
    assert (rebuilt.units, rebuilt.kept) == (1, 0)
    assert synced.content() == before
    assert before


def test_a_folder_in_the_database_of_a_workspace_is_kept_without_the_database(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "cursor")
    place = cursor.Workspace("5a" * 16)  # has no workspace.json
    home.put_item("workspace", "file:///home/dev/kept", workspace=place)
    identifier = {"workspaceIdentifier": {"id": place.id}, "trackedGitRepos": []}
    home.composer([cursor.user("a")], workspace=place, head=identifier, data=identifier, has_graph=False)
    home.write()
    synced = SyncedArchive("cursor", tmp_path / "cursor", tmp_path / "home")
    synced.sync()
    shutil.rmtree(tmp_path / "cursor")
    assert _rebuild(synced).kept == 0
    assert [summary.workspace_path for summary in synced.summaries()] == ["/home/dev/kept"]


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_rebuild_of_cursor_cli_transcripts_gives_the_same_content(is_gone: bool, tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_cursor_cli_history(root, sessions=6, messages=10)
    synced = SyncedArchive("cursor-cli", root, tmp_path / "home")
    synced.sync()
    if is_gone:
        shutil.rmtree(root)
        root.mkdir()
        synced.sync()
    before = synced.content()
    rebuilt = _rebuild(synced)
    assert rebuilt.units + rebuilt.kept > 0
    assert synced.content() == before


def test_an_interrupted_rebuild_leaves_the_content_unchanged(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    for seed in range(4):
        Transcript(seed=seed).user(f"question {seed}").assistant("yes").write(synced.root)
    synced.sync()
    before = synced.content()

    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(synced.archive, Index(tmp_path / "index"), stop)
    assert synced.archive.maintenance.verify() == []
    assert synced.content() == before
    synced.sync()
    assert synced.content() == before


def test_compact_merges_the_segments_of_a_file_that_grew(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE).user("a")
    for index in range(30):
        session.user(f"question {index}").assistant("the same long answer " * 20)
        path = session.write(synced.root)
        synced.sync()
    data = path.read_bytes()
    before = synced.archive.maintenance.status()
    compaction = synced.archive.maintenance.compact()
    assert compaction.merged == 29
    assert compaction.saved > 0
    after = synced.archive.maintenance.status()
    assert after.kept_bytes == before.kept_bytes == len(data)
    assert after.kept_size < before.kept_size / 4
    (written,) = synced.archive.originals.write_session(ONE, tmp_path / "out")
    assert written.read_bytes() == data
    assert synced.archive.maintenance.compact().merged == 0
    session.user("one more").write(synced.root)
    synced.sync()
    assert synced.archive.maintenance.verify() == []


# --- archives of every schema version -----------------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(ARCHIVES.glob("*.db")), ids=lambda path: path.stem)
def test_an_archive_of_every_schema_version_opens_with_the_same_content(file: Path, tmp_path: Path) -> None:
    old = sqlite3.connect(file)
    query = (
        "select external_id, title, message_count, total_tokens, workspace_path from conversations order by 1"
    )
    expected = old.execute(query).fetchall()
    old.close()
    shutil.copy(file, tmp_path / "archive.db")
    archive = Archive(tmp_path / "archive.db")
    assert archive.maintenance.status().schema == SCHEMA_VERSION
    assert archive.maintenance.verify() == []
    synced = SyncedArchive("claude-code", tmp_path, tmp_path)
    rows = [
        (summary.id, summary.title, summary.message_count, summary.total_tokens, summary.workspace_path)
        for summary in sorted(synced.summaries(), key=lambda summary: summary.id)
    ]
    assert rows == expected
    assert [m.content for m in synced.messages(ONE) if m.role != "tool"] == [
        "When does the last ferry leave?",
        "Looking.",
        "At 23:40.",
    ]
    assert [m.copied_from for m in synced.messages("58f3cb40")][:4] == [ONE] * 4
    assert _rebuild(synced).units == 2
    assert [m.content for m in synced.messages("58f3cb40") if m.role == "user"][-1] == "And on Sundays?"


def test_there_is_an_archive_of_every_schema_version() -> None:
    schemas = set()
    for file in ARCHIVES.glob("*.db"):
        db = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        schemas |= {db.execute("pragma user_version").fetchone()[0]}
        db.close()
    assert schemas == set(range(1, SCHEMA_VERSION + 1))


def test_a_rebuild_without_the_sources_keeps_long_results_and_the_type_of_subagents(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE, version="2.1.230").user("go").delegate("Look", "Seen.", agent_type="Explore")
    session.spill(tool_calls.bash("cat log"), "line\n" * 9000 + "last line")
    session.write(synced.root)
    synced.sync()
    shutil.rmtree(synced.root / "projects")
    synced.sync()
    report = _rebuild(synced)
    assert (report.units, report.kept) == (2, 0)
    results = [message.tool.result for message in synced.messages(ONE) if message.tool is not None]
    assert any(result is not None and result.endswith("last line") for result in results)
    kinds = synced.archive._db.execute("select kind from subagent").fetchall()
    assert kinds == [("Explore",)]
