"""Everything that a sync reads is in the archive."""

import json
import os
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.sources.protocols import close
from backscroll.testing import cursor, cursor_cli, database
from backscroll.testing.claude_code import Transcript, resume, tool_calls
from tests.archive.synced_archive import SyncedArchive
from tests.builders.claude_code.generations import GENERATIONS
from tests.histories import HISTORIES, History
from tests.oracle.fold import fold
from tests.oracle.join import join


@pytest.fixture
def synced(tmp_path: Path) -> SyncedArchive:
    (tmp_path / "root").mkdir()
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


def test_an_unreadable_unit_is_no_problem_after_it_is_deleted(tmp_path: Path) -> None:
    home = cursor_cli.Home(tmp_path / "root")
    chats = [home.chat([cursor.user("hello"), cursor.assistant("yes")]) for _ in range(2)]
    chats[1].store.write_bytes(b"no database " * 1000)
    synced = SyncedArchive("cursor-cli", tmp_path / "root", tmp_path / "home")
    assert [synced.sync().problems for _ in range(2)] == [1, 1]
    shutil.rmtree(chats[1].folder)
    assert [synced.sync().problems for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("history", HISTORIES, ids=repr)
def test_the_archive_contains_the_joined_content_of_all_units(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    synced = SyncedArchive(history.source_name, root, tmp_path / "home")
    synced.sync()
    source = history.source()
    expected = join((source.platform, fold(source.read(unit))) for unit in source.units(root))
    close(source)
    sessions = {key: one for key, one in expected.items() if one.opening.agent_id is None}
    found = {one.id: one for one in synced.summaries() if one.parent_ref is None}
    agents = {key[1] for key, one in expected.items() if one.opening.agent_id is not None}
    assert found.keys() - agents == {key[1] for key in sessions}
    for key, session in sessions.items():
        messages = list(synced.archive.messages.of_session(found[key[1]]))
        assert [m.id for m in messages] == [m.id for m in session.messages]
        assert [m for m in messages if m.copied_from is None] == [
            m for m in session.messages if m.copied_from is None
        ]
        if session.closing.title is not None:
            assert found[key[1]].title == session.closing.title


def test_a_second_sync_reads_nothing(synced: SyncedArchive) -> None:
    Transcript().user("a").assistant("b").write(synced.root)
    assert synced.sync().new == 1
    again = synced.sync()
    assert (again.changed, again.vanished, again.units) == (0, 0, 1)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_history_read_in_parts_equals_one_read_at_once(generation: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    GENERATIONS[generation](root, 0)
    whole = SyncedArchive("claude-code", root, tmp_path / "whole")
    whole.sync()
    expected = whole.content()
    files = {path: path.read_bytes() for path in root.rglob("*.jsonl")}
    for parts in (2, 5):
        synced = SyncedArchive("claude-code", root, tmp_path / f"parts-{parts}")
        for part in range(1, parts + 1):
            for path, data in files.items():
                lines = data.splitlines(keepends=True)
                path.write_bytes(b"".join(lines[: len(lines) * part // parts]))
            synced.sync()
        found = synced.content()
        assert found.keys() == expected.keys()
        for name, (summary, messages) in expected.items():
            assert _without_queued(found[name][1]) == _without_queued(messages), name
            assert found[name][0] == summary, name


def _without_queued(messages: list[object]) -> list[object]:
    """Drop prompts that were read while queued: after delivery they stay as inactive messages."""
    return [m for m in messages if getattr(m, "kind", None) != "queued" or getattr(m, "is_active", True)]


def test_only_appended_lines_are_read(synced: SyncedArchive) -> None:
    session = Transcript().user("a").assistant("b")
    session.write(synced.root)
    synced.sync()
    session.user("c").assistant(tools=[tool_calls.bash("ls")])
    session.write(synced.root)
    assert synced.sync().grew == 1
    session.result(session.tool_ids[-1], "a.py").write(synced.root)
    assert synced.sync().grew == 1
    messages = synced.messages(session.session_id)
    assert [m.content for m in messages if m.role in ("user", "assistant")] == ["a", "b", "c"]
    assert [m.tool.result for m in messages if m.tool] == ["a.py"]


def test_a_deleted_session_stays_and_is_marked_as_gone(synced: SyncedArchive) -> None:
    session = Transcript().user("precious").assistant("yes")
    path = session.write(synced.root)
    synced.sync()
    path.unlink()
    assert synced.sync().vanished == 1
    (summary,) = synced.summaries()
    assert summary.is_gone
    assert [m.content for m in synced.messages(session.session_id)] == ["precious", "yes"]
    session.write(synced.root)
    assert synced.sync().came_back == 1
    assert not synced.summaries()[0].is_gone


def test_messages_removed_by_a_rewrite_are_kept(synced: SyncedArchive) -> None:
    session = Transcript().user("first").assistant("one").user("second").assistant("two")
    path = session.write(synced.root)
    synced.sync()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    assert synced.sync().rewritten == 1
    messages = synced.messages(session.session_id)
    assert [m.content for m in messages] == ["first", "one", "second", "two"]
    assert [m.is_active for m in messages] == [True, True, False, False]
    (summary,) = synced.summaries()
    assert summary.message_count == 2


def test_a_message_repeated_by_a_resume_counts_once(synced: SyncedArchive) -> None:
    first = Transcript(version="1.0.98").user("a").assistant("b")
    second = resume(first).user("c").assistant("d")
    first.write(synced.root)
    synced.sync()
    alone = {one.id: one.total_tokens for one in synced.summaries()}[first.session_id]
    second.write(synced.root)
    synced.sync()
    found = {one.id: one for one in synced.summaries()}
    assert found[first.session_id].total_tokens == alone
    assert [m.copied_from for m in synced.messages(second.session_id)][:2] == [first.session_id] * 2
    assert (found[second.session_id].interaction_count, found[second.session_id].message_count) == (1, 4)


@pytest.mark.parametrize("cut", ["first", "second"])
def test_a_response_copied_before_it_was_complete_has_the_complete_usage(
    synced: SyncedArchive, cut: str
) -> None:
    first = Transcript(version="1.0.98").user("a").assistant("b")
    second = resume(first).user("c")
    paths = {"first": first.write(synced.root), "second": second.write(synced.root)}
    whole = json.loads(paths["first"].read_bytes().splitlines()[1])["message"]["usage"]
    text = paths[cut].read_text()
    usage_text = f'"output_tokens":{whole["output_tokens"]}'
    assert usage_text in text
    paths[cut].write_text(text.replace(usage_text, '"output_tokens":1'))
    synced.sync()
    assert sum(one.total_tokens or 0 for one in synced.summaries()) == sum(
        whole.get(name, 0)
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        )
    )


def test_a_session_has_totals_of_changes_and_decisions(synced: SyncedArchive) -> None:
    original = "one\ntwo\n"
    session = Transcript().user("go").run(tool_calls.edit("/a.py", "two", "2\n3", original=original))
    session.assistant(tools=[tool_calls.edit("/a.py", "one", "1", original=original)])
    session.reject(session.tool_ids[-1]).user("no").assistant("fine").write(synced.root)
    synced.sync()
    (summary,) = synced.summaries()
    assert (summary.interaction_count, summary.total_changes) == (2, 3)
    assert summary.acceptance_rate == 0.5


def test_a_file_can_be_written_back_byte_for_byte(synced: SyncedArchive, tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    path = session.write(synced.root)
    synced.sync()
    session.user("c").write(synced.root)
    synced.sync()
    data = path.read_bytes()
    path.unlink()
    synced.sync()
    (written,) = synced.archive.originals.write_session(session.session_id, tmp_path / "out")
    assert written.read_bytes() == data


def test_a_locked_database_removes_nothing_and_is_read_later(tmp_path: Path) -> None:
    root = tmp_path / "cursor"
    home = cursor.Home(root, journal="delete")
    home.composer(
        [cursor.user("precious"), cursor.assistant("yes")], id="6d2f0a34-0000-4000-8000-0000000000aa"
    )
    home.write()
    synced = SyncedArchive("cursor", root, tmp_path / "home")
    synced.sync()
    home.composer([cursor.user("new"), cursor.assistant("too")], id="6d2f0a34-0000-4000-8000-0000000000bb")
    home.write()
    with database.exclusive_lock(home.database):
        synced.sync()
    messages = synced.messages("6d2f0a34-0000-4000-8000-0000000000aa")
    assert [(m.content, m.is_active) for m in messages] == [("precious", True), ("yes", True)]
    assert not any(one.is_gone for one in synced.summaries())
    synced.sync()
    assert [m.content for m in synced.messages("6d2f0a34-0000-4000-8000-0000000000bb")] == ["new", "too"]


def test_a_new_modification_time_is_no_change(synced: SyncedArchive) -> None:
    session = Transcript().user("a").assistant("b")
    other = Transcript("5e551011-0000-4000-8000-0000000000bb").user("c")
    paths = [session.write(synced.root), other.assistant("d").write(synced.root)]
    paths[1].write_bytes(paths[1].read_bytes() + b'{"type":"user","mess')  # a truncated last line
    synced.sync()
    before = synced.content()
    for path in paths:
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))
    report = synced.sync()
    assert (report.changed, report.sessions) == (0, 0)
    assert synced.content() == before
    session.user("e").write(synced.root)
    assert synced.sync().grew == 1
    assert [m.content for m in synced.messages(session.session_id)] == ["a", "b", "e"]


def test_a_new_side_file_is_archived_if_only_the_time_of_the_transcript_changed(
    synced: SyncedArchive,
) -> None:
    path = Transcript().user("a").assistant("b").write(synced.root)
    synced.sync()
    side_file = path.with_suffix("") / "tool-results" / "toolu_1.txt"
    side_file.parent.mkdir(parents=True)
    side_file.write_text("a long result")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))
    synced.sync()
    (unit,) = synced.archive.originals.units_with_file()
    assert [size for _, size in synced.archive.originals.side_files(unit)] == [len("a long result")]


def test_a_truncated_line_is_replaced_by_its_final_content(synced: SyncedArchive, tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    path = session.write(synced.root)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"user","mess')
    assert synced.sync().problems == 1
    path.write_bytes(whole + session.user("c").write(tmp_path / "other").read_bytes()[len(whole) :])
    report = synced.sync()
    assert (report.grew, report.problems) == (1, 0)
    assert [m.content for m in synced.messages(session.session_id)] == ["a", "b", "c"]
    (written,) = synced.archive.originals.write_session(session.session_id, tmp_path / "out")
    assert written.read_bytes() == path.read_bytes()


def test_an_idle_session_ends(synced: SyncedArchive) -> None:
    Transcript(start=datetime.now(UTC) - timedelta(minutes=1)).user("a").write(synced.root)
    synced.sync()
    db = sqlite3.connect(synced.archive.path)
    assert db.execute("select ended_at from conversations").fetchone() == (None,)
    db.execute("update conversations set updated_at = '2026-01-01T00:00:00.000Z'")
    db.commit()
    synced.sync()
    assert db.execute("select ended_at from conversations").fetchone() == ("2026-01-01T00:00:00.000Z",)


@pytest.mark.parametrize("history", HISTORIES, ids=repr)
def test_message_count_equals_the_number_of_shown_messages(history: History, tmp_path: Path) -> None:
    synced = SyncedArchive(history.source_name, history.write(tmp_path / "root"), tmp_path / "home")
    synced.sync()
    for summary in synced.summaries():
        shown = [m for m in synced.archive.messages.of_session(summary) if m.is_active and m.role != "system"]
        if summary.parent_ref is None:
            shown = [m for m in shown if m.agent_id in (None, summary.id)]
        assert (summary.ref, summary.message_count) == (summary.ref, len(shown))


@pytest.mark.parametrize("folder", ["globalStorage", "workspaceStorage/0f3c"])
def test_a_write_ahead_log_without_its_database_is_a_problem(folder: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    path = root / "User" / folder / "state.vscdb"
    path.parent.mkdir(parents=True)
    log = path.with_name("state.vscdb-wal")
    log.write_bytes(bytes(4096))
    synced = SyncedArchive("cursor", root, tmp_path / "home")
    for _ in range(2):
        assert synced.sync().problems == 1
        (problem,) = synced.archive.maintenance.current_problems(10)[1]
        assert (problem.code, problem.origin.path) == ("missing-database", str(log))
    log.unlink()
    report = synced.sync()
    assert (report.problems, report.vanished) == (0, 0)
    assert synced.archive.maintenance.current_problems(10) == (0, [])
