"""Sessions in the database of version 0.2, with or without transcripts."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing import database
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.builders.claude_code.legacy_db import write_store
from tests.oracle.fold import ParsedSession, UnitContent, fold
from tests.sources.claude_code.read_helpers import calls_of, read_session, texts_of


def build_session(seed: int = 0) -> Transcript:
    session = Transcript(version="0.2.122", seed=seed).user("Where is the quay?")
    session.run(tool_calls.bash("grep -n quay ferry.toml", "quay = 4"), text="I look.", thinking="A quay?")
    return session.assistant("Behind the dike.")


def read_units(root: Path) -> dict[str, UnitContent]:
    source = ClaudeCode()
    found = {unit.key: fold(source.read(unit)) for unit in source.units(root)}
    for one in found.values():
        counts = one.counts
        assert counts.records == counts.parsed + counts.ignored + counts.problems
        assert counts.records == sum(counts.kinds.values())
    return found


def session_in(root: Path, session: Transcript) -> ParsedSession:
    (parsed,) = read_units(root)[session.session_id].sessions
    return parsed


def change(path: Path, *statements: str, **values: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement, values)


def open_history(tmp_path: Path, root: Path) -> History:
    return History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home")


@pytest.mark.parametrize("leave", ["main", "wal", "wal-only"])
def test_a_session_in_the_database_equals_its_transcript(tmp_path: Path, leave: database.RowLocation) -> None:
    session = build_session()
    write_store(tmp_path / "store", session, rows_in=leave)
    stored, transcript = session_in(tmp_path / "store", session), read_session(session, tmp_path / "lines")
    assert [(m.id, m.role, m.content, m.parent_id) for m in stored.messages] == [
        (m.id, m.role, m.content, m.parent_id) for m in transcript.messages
    ]
    assert [(t.id, t.params, t.result, t.status) for t in calls_of(stored.messages)] == [
        (t.id, t.params, t.result, t.status) for t in calls_of(transcript.messages)
    ]
    assert stored.usage == transcript.usage
    assert stored.closing.workspace is not None
    assert (stored.closing.workspace.path, stored.closing.version) == (session.cwd, "0.2.122")
    assert stored.opening == transcript.opening


def test_times_have_the_precision_of_the_rows(tmp_path: Path) -> None:
    session = build_session()
    write_store(tmp_path / "store", session)
    stored, transcript = session_in(tmp_path / "store", session), read_session(session, tmp_path / "lines")
    assert [(m.timestamp, m.timestamp_source) for m in stored.messages] == [
        (m.timestamp.replace(microsecond=0) if m.timestamp else None, "stored") for m in transcript.messages
    ]


def test_the_origin_of_a_message_is_the_row_with_its_text(tmp_path: Path) -> None:
    session = build_session()
    path = write_store(tmp_path, session)
    rows = {
        row.key: row.value for unit in ClaudeCode().units(tmp_path) for row in ClaudeCode().raw_rows(unit)
    }
    for message in session_in(tmp_path, session).messages:
        assert message.origin.path == str(path)
        assert message.content.encode() in (rows[message.origin.place] or b"")
        assert message.origin.place.endswith(message.id.partition(".")[0])


def test_a_message_in_both_the_database_and_a_transcript_is_stored_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    session = build_session()
    session.write(root)
    write_store(root, session)
    with open_history(tmp_path, root) as history:
        history.sync()
        (summary,) = history.list_sessions().data
        merged = history.get_session(summary.id).messages
    alone = read_session(session, tmp_path / "alone").messages
    assert [message.id for message in merged] == [message.id for message in alone]
    assert summary.message_count == len(alone)
    assert summary.total_tokens == sum(
        one.total for one in read_session(session, tmp_path / "alone").usage.values()
    )


def test_a_session_can_be_split_between_the_database_and_a_transcript(tmp_path: Path) -> None:
    root = tmp_path / "root"
    session = build_session()
    write_store(root, session)
    session.user("And now?").assistant("The tide.")
    path = session.write(root)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[-2:]))
    with open_history(tmp_path, root) as history:
        history.sync()
        (summary,) = history.list_sessions().data
        messages = history.get_session(summary.id).messages
    assert [message.content for message in messages if message.role == "user"] == [
        "Where is the quay?",
        "And now?",
    ]
    assert len({message.id for message in messages}) == len(messages) == summary.message_count


def test_a_summary_is_the_title_of_the_session_with_its_message(tmp_path: Path) -> None:
    root = tmp_path / "root"
    session = build_session()
    write_store(root, session.summary("The quay behind the dike", session.last_uuid))
    with open_history(tmp_path, root) as history:
        history.sync()
        (summary,) = history.list_sessions().data
        assert summary.title == "The quay behind the dike"
        assert history.sync() is not None


def test_only_a_session_that_changed_in_the_database_is_read_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    one, two = build_session(1), build_session(2)
    write_store(root, one, two)
    with open_history(tmp_path, root) as history:
        history.sync()
        write_store(root, one.user("And now?"))
        report = history.sync()
        assert report is not None
        assert report.changed == 2  # the session and the database
        assert history.list_sessions().pagination.total == 2
        again = history.sync()
        assert again is not None
        assert again.changed == 0


def test_a_session_of_a_deleted_database_is_kept_and_can_be_extracted(tmp_path: Path) -> None:
    root = tmp_path / "root"
    one, two = build_session(1), build_session(2)
    path = write_store(root, one.summary("The quay", one.last_uuid), two)
    with open_history(tmp_path, root) as history:
        history.sync()
        before = history.get_session(one.session_id)
        path.unlink()
        history.sync()
        assert history.get_session(one.session_id).messages == before.messages
        history.archive_admin.rebuild()
        assert history.get_session(one.session_id).messages == before.messages
        history.archive_admin.extract(one.session_id, tmp_path / "back")
    assert set(read_units(tmp_path / "back")) == {one.session_id, ""}
    back = session_in(tmp_path / "back", one)
    assert [m.content for m in back.messages] == [m.content for m in before.messages]


def test_a_database_with_unknown_tables_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "__store.db"
    database.write(path, "create table threads (id); create table notes (id); insert into notes values (1);")
    found = read_units(tmp_path)
    assert list(found) == [""]
    assert [problem.reason for problem in found[""].problems] == [
        "is not a store of Claude Code 0.2: it has notes, threads"
    ]


def test_an_additional_table_is_a_problem(tmp_path: Path) -> None:
    session = build_session()
    change(write_store(tmp_path, session), "create table extra (id)", "insert into extra values (1)")
    found = read_units(tmp_path)
    assert [problem.reason for problem in found[""].problems] == ["unknown table with 1 row"]
    assert texts_of(session_in(tmp_path, session).messages, "user") == ["Where is the quay?"]


def test_rows_without_a_session_or_without_text_are_problems(tmp_path: Path) -> None:
    session = build_session()
    path = write_store(tmp_path, session)
    change(
        path,
        "insert into user_messages values ('lost', '{}', null, 1)",
        "delete from assistant_messages where uuid = :last",
        "insert into conversation_summaries values ('missing', 'Nothing', 1)",
        last=session.last_uuid,
    )
    found = read_units(tmp_path)
    assert [problem.reason for problem in found[""].problems] == ["1 row without a session"]
    assert len(found[session.session_id].problems) == 1


@pytest.mark.parametrize("message", ["", "plain words", '"a text"', "[]", "{", "7", "null"])
def test_the_message_column_can_contain_any_text(tmp_path: Path, message: str) -> None:
    session = build_session()
    change(write_store(tmp_path, session), "update user_messages set message = :message", message=message)
    assert session_in(tmp_path, session).closing.workspace is not None


def test_a_file_that_is_not_a_database_is_a_problem_until_it_is_replaced(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    path = root / "__store.db"
    path.write_bytes(b"not a database, and longer than the header of one" * 4)
    with open_history(tmp_path, root) as history:
        report = history.sync()
        assert report is not None
        assert report.problems == 1
        path.unlink()
        write_store(root, build_session())
        history.sync()
        assert history.list_sessions().pagination.total == 1


@given(cut=st.integers(0, 60_000), garbage=st.binary(max_size=64))
def test_a_truncated_or_overwritten_database_never_raises(
    tmp_path_factory: pytest.TempPathFactory, cut: int, garbage: bytes
) -> None:
    root = tmp_path_factory.mktemp("cut")
    path = write_store(root, build_session())
    whole = path.read_bytes()
    path.write_bytes(whole[:cut] + garbage + whole[cut + 64 :])
    assert read_units(root)


def test_a_session_of_the_database_cannot_be_resumed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    session = build_session()
    write_store(root, session)
    with open_history(tmp_path, root) as history:
        history.sync()
        obstacle = history.resume.plan(session.session_id).obstacle
        assert obstacle is not None
        assert "database of Claude Code 0.2" in obstacle


def test_a_forgotten_session_does_not_come_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    one, two = build_session(1), build_session(2)
    write_store(root, one, two)
    with open_history(tmp_path, root) as history:
        history.sync()
        history.archive_admin.forget(one.session_id)
        write_store(root, two.user("And now?"))
        history.sync()
        assert [summary.id for summary in history.list_sessions().data] == [two.session_id]
