"""Rebuild from stored originals, and open archives of every schema version."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.connection import SCHEMA_VERSION
from backscroll.index import Index
from backscroll.ingest.maintenance import Rebuilt, rebuild
from backscroll.model import Checkpoint, Item, Message, Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import GENERATIONS, Transcript, tool_calls
from tests.archive.cursor_rows import change, synced_cursor_home
from tests.archive.synced_archive import SyncedArchive

ARCHIVES = Path(__file__).parent.parent / "archives"
ONE = "5e551011-0000-4000-8000-0000000000aa"


def _rebuild(kept: SyncedArchive) -> Rebuilt:
    return rebuild(kept.archive, Index(kept.archive.path.with_name("index")))


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("is_gone", [False, True])
def test_an_archive_made_anew_tells_the_same(generation: str, is_gone: bool, tmp_path: Path) -> None:
    root = tmp_path / "root"
    GENERATIONS[generation](root, 0)
    kept = SyncedArchive("claude-code", root, tmp_path / "home")
    kept.sync()
    if is_gone:
        shutil.rmtree(root)
        root.mkdir()
        kept.sync()
    before = kept.content()
    states = [one.is_gone for one in kept.summaries()]
    done = _rebuild(kept)
    assert done.units or done.kept
    assert is_gone or not done.kept
    assert kept.content() == before
    assert [one.is_gone for one in kept.summaries()] == states
    assert kept.archive.maintenance.verify() == []
    assert kept.sync().changed == 0


def test_originals_that_vanished_are_told_anew_as_the_reader_reads_them_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    gone = Transcript(ONE).user("first").assistant("one")
    there = Transcript(seed=2).user("second").assistant("two")
    path = gone.write(kept.root)
    there.write(kept.root)
    kept.sync()
    path.unlink()
    kept.sync()
    read = ClaudeCode.read

    def better(self: ClaudeCode, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        for item in read(self, unit, since):
            if isinstance(item, Message):
                item = replace(item, id=f"{item.id}-better", content=item.content + "!")
            yield item

    monkeypatch.setattr(ClaudeCode, "read", better)
    done = _rebuild(kept)
    assert (done.units, done.kept, done.sessions) == (2, 0, 2)
    assert [m.content for m in kept.messages(ONE)] == ["first!", "one!"]
    assert [m.origin.path for m in kept.messages(ONE)] == [str(path)] * 2
    assert [m.content for m in kept.messages(there.session_id)] == ["second!", "two!"]


def test_what_lay_beside_a_vanished_file_is_not_lost(tmp_path: Path) -> None:
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE).user("read it all")
    session.spill(tool_calls.bash("cat long.txt"), "a long line\n" * 5000)
    path = session.write(kept.root)
    kept.sync()
    results = [m.tool.result for m in kept.messages(ONE) if m.tool]
    assert any(result and len(result) > 50_000 for result in results)
    shutil.rmtree(path.parent)
    kept.sync()
    assert _rebuild(kept).kept == 1
    assert [m.tool.result for m in kept.messages(ONE) if m.tool] == results


def test_what_a_rewrite_took_away_is_still_there_when_all_is_made_anew(tmp_path: Path) -> None:
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    path = Transcript(ONE).user("first").assistant("one").user("second").assistant("two").write(kept.root)
    kept.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    kept.sync()
    _rebuild(kept)
    assert [m.content for m in kept.messages(ONE)] == ["first", "one", "second", "two"]


def test_a_session_whose_file_was_emptied_is_still_gone_when_all_is_made_anew(tmp_path: Path) -> None:
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    path = Transcript(ONE).user("first").assistant("one").write(kept.root)
    kept.sync()
    path.write_bytes(b"")
    kept.sync()
    before = kept.content()
    assert _rebuild(kept).kept == 1
    assert kept.content() == before
    assert [one.is_gone for one in kept.summaries()] == [True]


def test_a_session_of_which_only_subagents_are_left_is_made_anew(tmp_path: Path) -> None:
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE, version="2.0.40").user("go").delegate("Look", "Seen.")
    session.agents[0].write(kept.root)
    kept.sync()
    before = kept.content()
    kept.archive.close()
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    assert _rebuild(kept).units == 1
    assert kept.content() == before


def test_a_title_that_a_rewrite_took_away_is_still_there_when_all_is_made_anew(tmp_path: Path) -> None:
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE).user("first").assistant("one").ai_title("The quay")
    path = session.write(kept.root)
    kept.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    kept.sync()
    assert kept.summaries()[0].title == "The quay"
    _rebuild(kept)
    assert kept.summaries()[0].title == "The quay"


def test_rows_that_were_changed_unnoticed_do_not_take_the_place_of_what_was_read(tmp_path: Path) -> None:
    home, kept, composer = synced_cursor_home(tmp_path)
    before = kept.content()
    # A tool's own writes give a row another number; a program that repairs one in its place does not.
    other = "update cursorDiskKV set value = replace(value, 'happens once', 'is off') where key = ?"
    change(home, other, composer.bubble_key(1))
    kept.sync()
    _rebuild(kept)
    assert kept.content() == before


def test_a_file_that_grew_in_the_meantime_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE).user("first").assistant("one")
    session.write(kept.root)
    kept.sync()
    session.user("second").write(kept.root)
    _rebuild(kept)
    assert kept.sync().grew == 1
    assert [m.content for m in kept.messages(ONE)] == ["first", "one", "second"]


def test_sessions_of_a_database_that_is_gone_are_told_anew_from_their_rows(tmp_path: Path) -> None:
    ide = cursor.Home(tmp_path / "cursor")
    ide.composer([cursor.user("precious"), cursor.assistant("yes")], id=ONE, name="kept")
    ide.write()
    kept = SyncedArchive("cursor", tmp_path / "cursor", tmp_path / "home")
    kept.sync()
    before = kept.content()
    shutil.rmtree(tmp_path / "cursor")
    done = _rebuild(kept)
    assert (done.units, done.kept) == (1, 0)
    assert kept.content() == before
    assert before


@pytest.mark.parametrize("is_gone", [False, True])
def test_transcripts_of_the_command_line_are_told_the_same(is_gone: bool, tmp_path: Path) -> None:
    root = tmp_path / "root"
    cursor_cli.history(root, sessions=6, messages=10)
    kept = SyncedArchive("cursor-cli", root, tmp_path / "home")
    kept.sync()
    if is_gone:
        shutil.rmtree(root)
        root.mkdir()
        kept.sync()
    before = kept.content()
    done = _rebuild(kept)
    assert done.units + done.kept > 0
    assert kept.content() == before


def test_an_interrupted_rebuild_leaves_a_whole_archive(tmp_path: Path) -> None:
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    for seed in range(4):
        Transcript(seed=seed).user(f"question {seed}").assistant("yes").write(kept.root)
    kept.sync()
    before = kept.content()

    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(kept.archive, Index(tmp_path / "index"), stop)
    assert kept.archive.maintenance.verify() == []
    assert kept.content() == before
    kept.sync()
    assert kept.content() == before


def test_pieces_of_a_grown_file_are_put_together(tmp_path: Path) -> None:
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript(ONE).user("a")
    for number in range(30):
        session.user(f"question {number}").assistant("the same long answer " * 20)
        path = session.write(kept.root)
        kept.sync()
    data = path.read_bytes()
    before = kept.archive.maintenance.status()
    done = kept.archive.maintenance.compact()
    assert done.merged == 29
    assert done.saved > 0
    after = kept.archive.maintenance.status()
    assert after.kept_bytes == before.kept_bytes == len(data)
    assert after.kept_size < before.kept_size / 4
    (written,) = kept.archive.originals.write_session(ONE, tmp_path / "out")
    assert written.read_bytes() == data
    assert kept.archive.maintenance.compact().merged == 0
    session.user("one more").write(kept.root)
    kept.sync()
    assert kept.archive.maintenance.verify() == []


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
    kept = SyncedArchive("claude-code", tmp_path, tmp_path)
    told = [
        (one.id, one.title, one.message_count, one.total_tokens, one.workspace_path)
        for one in sorted(kept.summaries(), key=lambda one: one.id)
    ]
    assert told == expected
    assert [m.content for m in kept.messages(ONE) if m.role != "tool"] == [
        "When does the last ferry leave?",
        "Looking.",
        "At 23:40.",
    ]
    assert [m.copied_from for m in kept.messages("58f3cb40")][:4] == [ONE] * 4
    assert _rebuild(kept).units == 2
    assert [m.content for m in kept.messages("58f3cb40") if m.role == "user"][-1] == "And on Sundays?"


def test_there_is_an_archive_of_every_schema_version() -> None:
    schemas = set()
    for file in ARCHIVES.glob("*.db"):
        db = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        schemas |= {db.execute("pragma user_version").fetchone()[0]}
        db.close()
    assert schemas == set(range(1, SCHEMA_VERSION + 1))
