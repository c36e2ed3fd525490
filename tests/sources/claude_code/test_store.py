"""Sessions of 0.2 that lie in its database, alone or beside transcripts."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing import database
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.testing.claude_code.legacy_db import write_store
from tests.oracle.fold import ParsedSession, UnitContent, fold
from tests.sources.claude_code.reading import only, said, tools


def talk(seed: int = 0) -> Transcript:
    session = Transcript(version="0.2.122", seed=seed).user("Where is the quay?")
    session.run(tool_calls.bash("grep -n quay ferry.toml", "quay = 4"), text="I look.", thinking="A quay?")
    return session.assistant("Behind the dike.")


def told(root: Path) -> dict[str, UnitContent]:
    source = ClaudeCode()
    found = {unit.key: fold(source.read(unit)) for unit in source.units(root)}
    for one in found.values():
        tally = one.counts
        assert tally.records == tally.parsed + tally.ignored + tally.problems
        assert tally.records == sum(tally.kinds.values())
    return found


def session_in(root: Path, session: Transcript) -> ParsedSession:
    (reading,) = told(root)[session.session_id].sessions
    return reading


def change(path: Path, *statements: str, **values: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement, values)


def open_history(tmp_path: Path, root: Path) -> History:
    return History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home")


@pytest.mark.parametrize("leave", ["main", "wal", "wal-only"])
def test_a_session_in_the_database_is_told_like_its_transcript(
    tmp_path: Path, leave: database.RowLocation
) -> None:
    session = talk()
    write_store(tmp_path / "store", session, rows_in=leave)
    there, here = session_in(tmp_path / "store", session), only(session, tmp_path / "lines")
    assert [(m.id, m.role, m.content, m.parent_id) for m in there.messages] == [
        (m.id, m.role, m.content, m.parent_id) for m in here.messages
    ]
    assert [(t.id, t.params, t.result, t.status) for t in tools(there.messages)] == [
        (t.id, t.params, t.result, t.status) for t in tools(here.messages)
    ]
    assert there.usage == here.usage
    assert there.closing.workspace is not None
    assert (there.closing.workspace.path, there.closing.version) == (session.cwd, "0.2.122")
    assert there.opening == here.opening


def test_times_are_those_of_the_rows_to_the_second(tmp_path: Path) -> None:
    session = talk()
    write_store(tmp_path / "store", session)
    there, here = session_in(tmp_path / "store", session), only(session, tmp_path / "lines")
    assert [(m.timestamp, m.timestamp_source) for m in there.messages] == [
        (m.timestamp.replace(microsecond=0) if m.timestamp else None, "stored") for m in here.messages
    ]


def test_a_message_says_which_row_it_was_read_from(tmp_path: Path) -> None:
    session = talk()
    path = write_store(tmp_path, session)
    rows = {
        row.key: row.value for unit in ClaudeCode().units(tmp_path) for row in ClaudeCode().raw_rows(unit)
    }
    for message in session_in(tmp_path, session).messages:
        assert message.origin.path == str(path)
        assert message.content.encode() in (rows[message.origin.place] or b"")
        assert message.origin.place.endswith(message.id.partition(".")[0])


def test_a_message_in_both_the_database_and_a_transcript_is_one(tmp_path: Path) -> None:
    root = tmp_path / "root"
    session = talk()
    session.write(root)
    write_store(root, session)
    with open_history(tmp_path, root) as history:
        history.sync()
        (summary,) = history.list_sessions().data
        both = history.get_session(summary.id).messages
    alone = only(session, tmp_path / "alone").messages
    assert [message.id for message in both] == [message.id for message in alone]
    assert summary.message_count == len(alone)
    assert summary.total_tokens == sum(one.total for one in only(session, tmp_path / "alone").usage.values())


def test_half_of_a_session_may_lie_in_the_database(tmp_path: Path) -> None:
    root = tmp_path / "root"
    session = talk()
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


def test_a_summary_names_the_session_that_holds_its_message(tmp_path: Path) -> None:
    root = tmp_path / "root"
    session = talk()
    write_store(root, session.summary("The quay behind the dike", session.last_uuid))
    with open_history(tmp_path, root) as history:
        history.sync()
        (summary,) = history.list_sessions().data
        assert summary.title == "The quay behind the dike"
        assert history.sync() is not None


def test_a_session_that_grows_in_the_database_is_read_again_and_no_other(tmp_path: Path) -> None:
    root = tmp_path / "root"
    one, two = talk(1), talk(2)
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


def test_a_session_of_the_database_is_kept_when_it_goes_and_can_be_written_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    one, two = talk(1), talk(2)
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
    assert set(told(tmp_path / "back")) == {one.session_id, ""}
    back = session_in(tmp_path / "back", one)
    assert [m.content for m in back.messages] == [m.content for m in before.messages]


def test_tables_that_nobody_knows_are_named_and_nothing_breaks(tmp_path: Path) -> None:
    path = tmp_path / "__store.db"
    database.write(path, "create table threads (id); create table notes (id); insert into notes values (1);")
    found = told(tmp_path)
    assert list(found) == [""]
    assert [problem.reason for problem in found[""].problems] == [
        "is not a store of Claude Code 0.2: it has notes, threads"
    ]


def test_a_table_more_than_there_should_be_is_told_of(tmp_path: Path) -> None:
    session = talk()
    change(write_store(tmp_path, session), "create table extra (id)", "insert into extra values (1)")
    found = told(tmp_path)
    assert [problem.reason for problem in found[""].problems] == ["unknown table, with 1 rows"]
    assert said(session_in(tmp_path, session).messages, "user") == ["Where is the quay?"]


def test_rows_without_a_session_or_without_words_are_problems(tmp_path: Path) -> None:
    session = talk()
    path = write_store(tmp_path, session)
    change(
        path,
        "insert into user_messages values ('lost', '{}', null, 1)",
        "delete from assistant_messages where uuid = :last",
        "insert into conversation_summaries values ('nobody', 'Nothing', 1)",
        last=session.last_uuid,
    )
    found = told(tmp_path)
    assert [problem.reason for problem in found[""].problems] == ["1 rows belong to no session"]
    assert len(found[session.session_id].problems) == 1


@pytest.mark.parametrize("message", ["", "plain words", '"a text"', "[]", "{", "7", "null"])
def test_any_text_may_stand_where_a_message_should(tmp_path: Path, message: str) -> None:
    session = talk()
    change(write_store(tmp_path, session), "update user_messages set message = :message", message=message)
    assert session_in(tmp_path, session).closing.workspace is not None


def test_a_file_that_is_no_database_is_a_problem_until_it_is_one(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    path = root / "__store.db"
    path.write_bytes(b"no database at all, and longer than its header would be" * 4)
    with open_history(tmp_path, root) as history:
        report = history.sync()
        assert report is not None
        assert report.problems == 1
        path.unlink()
        write_store(root, talk())
        history.sync()
        assert history.list_sessions().pagination.total == 1


@given(cut=st.integers(0, 60_000), garbage=st.binary(max_size=64))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_database_that_is_cut_or_overwritten_anywhere_breaks_nothing(
    tmp_path_factory: pytest.TempPathFactory, cut: int, garbage: bytes
) -> None:
    root = tmp_path_factory.mktemp("cut")
    path = write_store(root, talk())
    whole = path.read_bytes()
    path.write_bytes(whole[:cut] + garbage + whole[cut + 64 :])
    assert told(root)


def test_a_session_of_the_database_cannot_be_continued(tmp_path: Path) -> None:
    root = tmp_path / "root"
    session = talk()
    write_store(root, session)
    with open_history(tmp_path, root) as history:
        history.sync()
        told_why = history.resume.plan(session.session_id).obstacle
        assert told_why is not None
        assert "database of Claude Code 0.2" in told_why


def test_a_forgotten_session_does_not_come_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    one, two = talk(1), talk(2)
    write_store(root, one, two)
    with open_history(tmp_path, root) as history:
        history.sync()
        history.archive_admin.forget(one.session_id)
        write_store(root, two.user("And now?"))
        history.sync()
        assert [summary.id for summary in history.list_sessions().data] == [two.session_id]
