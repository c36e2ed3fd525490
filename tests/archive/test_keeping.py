"""What goes into the archive comes out of it."""

import json
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.sources.protocols import close
from backscroll.testing import cursor, cursor_cli, database
from backscroll.testing.claude_code import GENERATIONS, Transcript, resume, tool_calls
from tests.archive.keeping import Kept
from tests.histories import HISTORIES, History
from tests.oracle.fold import fold
from tests.oracle.join import join


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    (tmp_path / "root").mkdir()
    return Kept("claude-code", tmp_path / "root", tmp_path / "home")


def test_what_could_not_be_read_is_no_problem_once_it_is_gone(tmp_path: Path) -> None:
    home = cursor_cli.Home(tmp_path / "root")
    chats = [home.chat([cursor.user("hello"), cursor.assistant("yes")]) for _ in range(2)]
    chats[1].store.write_bytes(b"no database " * 1000)
    kept = Kept("cursor-cli", tmp_path / "root", tmp_path / "home")
    assert [kept.sync().problems for _ in range(2)] == [1, 1]
    shutil.rmtree(chats[1].folder)
    assert [kept.sync().problems for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("history", HISTORIES, ids=repr)
def test_the_archive_tells_what_the_units_tell_together(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    kept = Kept(history.source_name, root, tmp_path / "home")
    kept.sync()
    source = history.source()
    expected = join((source.platform, fold(source.read(unit))) for unit in source.units(root))
    close(source)
    sessions = {key: one for key, one in expected.items() if one.opening.agent_id is None}
    found = {one.id: one for one in kept.summaries() if one.parent_ref is None}
    agents = {key[1] for key, one in expected.items() if one.opening.agent_id is not None}
    assert found.keys() - agents == {key[1] for key in sessions}
    for key, session in sessions.items():
        messages = list(kept.archive.messages.of_session(found[key[1]]))
        assert [m.id for m in messages] == [m.id for m in session.messages]
        assert [m for m in messages if m.copied_from is None] == [
            m for m in session.messages if m.copied_from is None
        ]
        if session.closing.title is not None:
            assert found[key[1]].title == session.closing.title


def test_a_second_sync_reads_nothing(kept: Kept) -> None:
    Transcript().user("a").assistant("b").write(kept.root)
    assert kept.sync().new == 1
    again = kept.sync()
    assert (again.changed, again.vanished, again.units) == (0, 0, 1)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_history_read_in_parts_is_the_same_in_the_end(generation: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    GENERATIONS[generation](root, 0)
    whole = Kept("claude-code", root, tmp_path / "whole")
    whole.sync()
    expected = whole.told()
    files = {path: path.read_bytes() for path in root.rglob("*.jsonl")}
    for parts in (2, 5):
        kept = Kept("claude-code", root, tmp_path / f"parts-{parts}")
        for part in range(1, parts + 1):
            for path, data in files.items():
                lines = data.splitlines(keepends=True)
                path.write_bytes(b"".join(lines[: len(lines) * part // parts]))
            kept.sync()
        found = kept.told()
        assert found.keys() == expected.keys()
        for name, (summary, messages) in expected.items():
            assert _without_early_queue(found[name][1]) == _without_early_queue(messages), name
            assert found[name][0] == summary, name


def _without_early_queue(messages: list[object]) -> list[object]:
    """A prompt told from the queue before it was seen delivered stays, no longer active."""
    return [m for m in messages if getattr(m, "kind", None) != "queued" or getattr(m, "is_active", True)]


def test_only_what_was_added_is_read(kept: Kept) -> None:
    session = Transcript().user("a").assistant("b")
    session.write(kept.root)
    kept.sync()
    session.user("c").assistant(tools=[tool_calls.bash("ls")])
    session.write(kept.root)
    assert kept.sync().grew == 1
    session.result(session.tool_ids[-1], "a.py").write(kept.root)
    assert kept.sync().grew == 1
    messages = kept.messages(session.session_id)
    assert [m.content for m in messages if m.role in ("user", "assistant")] == ["a", "b", "c"]
    assert [m.tool.result for m in messages if m.tool] == ["a.py"]


def test_a_deleted_session_stays_and_is_said_to_be_gone(kept: Kept) -> None:
    session = Transcript().user("precious").assistant("yes")
    path = session.write(kept.root)
    kept.sync()
    path.unlink()
    assert kept.sync().vanished == 1
    (summary,) = kept.summaries()
    assert summary.is_gone
    assert [m.content for m in kept.messages(session.session_id)] == ["precious", "yes"]
    session.write(kept.root)
    assert kept.sync().came_back == 1
    assert not kept.summaries()[0].is_gone


def test_what_a_rewrite_took_away_is_kept(kept: Kept) -> None:
    session = Transcript().user("first").assistant("one").user("second").assistant("two")
    path = session.write(kept.root)
    kept.sync()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    assert kept.sync().rewritten == 1
    messages = kept.messages(session.session_id)
    assert [m.content for m in messages] == ["first", "one", "second", "two"]
    assert [m.is_active for m in messages] == [True, True, False, False]
    (summary,) = kept.summaries()
    assert summary.message_count == 2


def test_a_message_repeated_by_a_resume_counts_once(kept: Kept) -> None:
    first = Transcript(version="1.0.98").user("a").assistant("b")
    second = resume(first).user("c").assistant("d")
    first.write(kept.root)
    kept.sync()
    alone = {one.id: one.total_tokens for one in kept.summaries()}[first.session_id]
    second.write(kept.root)
    kept.sync()
    found = {one.id: one for one in kept.summaries()}
    assert found[first.session_id].total_tokens == alone
    assert [m.copied_from for m in kept.messages(second.session_id)][:2] == [first.session_id] * 2
    assert (found[second.session_id].interaction_count, found[second.session_id].message_count) == (1, 4)


@pytest.mark.parametrize("cut", ["first", "second"])
def test_a_response_that_was_copied_unfinished_costs_what_the_finished_one_says(kept: Kept, cut: str) -> None:
    first = Transcript(version="1.0.98").user("a").assistant("b")
    second = resume(first).user("c")
    paths = {"first": first.write(kept.root), "second": second.write(kept.root)}
    whole = json.loads(paths["first"].read_bytes().splitlines()[1])["message"]["usage"]
    text = paths[cut].read_text()
    told = f'"output_tokens":{whole["output_tokens"]}'
    assert told in text
    paths[cut].write_text(text.replace(told, '"output_tokens":1'))
    kept.sync()
    assert sum(one.total_tokens or 0 for one in kept.summaries()) == sum(
        whole.get(name, 0)
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        )
    )


def test_figures_of_a_session(kept: Kept) -> None:
    original = "one\ntwo\n"
    session = Transcript().user("go").run(tool_calls.edit("/a.py", "two", "2\n3", original=original))
    session.assistant(tools=[tool_calls.edit("/a.py", "one", "1", original=original)])
    session.reject(session.tool_ids[-1]).user("no").assistant("fine").write(kept.root)
    kept.sync()
    (summary,) = kept.summaries()
    assert (summary.interaction_count, summary.total_changes) == (2, 3)
    assert summary.acceptance_rate == 0.5


def test_a_file_can_be_written_back_byte_for_byte(kept: Kept, tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    path = session.write(kept.root)
    kept.sync()
    session.user("c").write(kept.root)
    kept.sync()
    data = path.read_bytes()
    path.unlink()
    kept.sync()
    (written,) = kept.archive.originals.write_session(session.session_id, tmp_path / "out")
    assert written.read_bytes() == data


def test_a_locked_database_takes_nothing_away_and_is_tried_again(tmp_path: Path) -> None:
    root = tmp_path / "cursor"
    home = cursor.Home(root, journal="delete")
    home.composer(
        [cursor.user("precious"), cursor.assistant("yes")], id="6d2f0a34-0000-4000-8000-0000000000aa"
    )
    home.write()
    kept = Kept("cursor", root, tmp_path / "home")
    kept.sync()
    home.composer([cursor.user("new"), cursor.assistant("too")], id="6d2f0a34-0000-4000-8000-0000000000bb")
    home.write()
    with database.locked(home.database):
        kept.sync()
    messages = kept.messages("6d2f0a34-0000-4000-8000-0000000000aa")
    assert [(m.content, m.is_active) for m in messages] == [("precious", True), ("yes", True)]
    assert not any(one.is_gone for one in kept.summaries())
    kept.sync()
    assert [m.content for m in kept.messages("6d2f0a34-0000-4000-8000-0000000000bb")] == ["new", "too"]


def test_a_torn_line_that_became_another_is_kept_as_it_became(kept: Kept, tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    path = session.write(kept.root)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"user","mess')
    assert kept.sync().problems == 1
    path.write_bytes(whole + session.user("c").write(tmp_path / "other").read_bytes()[len(whole) :])
    report = kept.sync()
    assert (report.grew, report.problems) == (1, 0)
    assert [m.content for m in kept.messages(session.session_id)] == ["a", "b", "c"]
    (written,) = kept.archive.originals.write_session(session.session_id, tmp_path / "out")
    assert written.read_bytes() == path.read_bytes()


def test_a_session_ends_when_it_has_been_quiet(kept: Kept) -> None:
    Transcript(start=datetime.now(UTC) - timedelta(minutes=1)).user("a").write(kept.root)
    kept.sync()
    db = sqlite3.connect(kept.archive.path)
    assert db.execute("select ended_at from conversations").fetchone() == (None,)
    db.execute("update conversations set updated_at = '2026-01-01T00:00:00.000Z'")
    db.commit()
    kept.sync()
    assert db.execute("select ended_at from conversations").fetchone() == ("2026-01-01T00:00:00.000Z",)


@pytest.mark.parametrize("history", HISTORIES, ids=repr)
def test_what_is_shown_of_sessions_and_subagents_is_what_is_counted(history: History, tmp_path: Path) -> None:
    kept = Kept(history.source_name, history.write(tmp_path / "root"), tmp_path / "home")
    kept.sync()
    for summary in kept.summaries():
        shown = [m for m in kept.archive.messages.of_session(summary) if m.is_active and m.role != "system"]
        if summary.parent_ref is None:
            shown = [m for m in shown if m.agent_id in (None, summary.id)]
        assert (summary.ref, summary.message_count) == (summary.ref, len(shown))
