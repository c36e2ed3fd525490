"""A copy of an archive with some sessions has these completely, and nothing of the others."""

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.session_key import SessionKey
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.pricing.rates import Rates
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript, resume

# Tables that refer to a unit or a fragment and are deleted with it.
CASCADING = {
    "activity_rollup",
    "edit",
    "edit_scan",
    "excluded_unit",
    "last_record",
    "message",
    "message_chunk",
    "message_update",
    "problem",
    "raw_row",
    "raw_segment",
    "reported_usage",
    "response",
    "source_event",
    "subagent_evidence",
    "subagent_link",
    "title_hint",
    "token_rollup",
    "tool_rollup",
}
# Tables that `keep_sessions` reduces or empties, and those with nothing about sessions.
REDUCED = {
    "blob_chunk",
    "conversations",
    "cursor_sessions",
    "folder_fingerprint",
    "forgotten_session",
    "forgotten_unit",
    "fragment",
    "git_commit",
    "commit_link",
    "hook_commit",
    "hook_event",
    "hook_repository",
    "index_queue",
    "manual_link",
    "note",
    "price",
    "star",
    "string",
    "subagent",
    "tag",
    "undone_copy",
    "unit",
    "user_title",
}
WITHOUT_SESSIONS = {"archive_identity", "migration", "sync_state"}


def write_history(folder: Path) -> History:
    """Write a session, one that resumes it (stored as a delta of the first), and Cursor sessions."""
    original = Transcript(seed=1)
    for number in range(40):
        original.user(f"question {number} about the walrus").assistant(f"answer {number} " * 50)
    original.delegate("count walruses", "There are two.")
    original.write(folder / "claude")
    resume(original, seed=2).user("and the quokka?").assistant("It sleeps.").write(folder / "claude")
    ide = cursor.Home(folder / "cursor")
    for name in ("walrus", "quokka"):
        ide.composer([cursor.user(f"draw a {name}"), cursor.assistant("Drawn.")], name=name)
    ide.write()
    roots = [NamedRoot("claude-code", folder / "claude"), NamedRoot("cursor", folder / "cursor")]
    history = History(roots=roots, home=folder / "home")
    history.sync()
    history.archive_admin.compact()
    return history


def copy_sessions(history: History, refs: list[str], target: Path) -> Archive:
    with closing(Archive(history.archive_path)) as archive:
        chosen = [history.find(ref) for ref in refs]
        archive.maintenance.copy_sessions(target, [SessionKey(one.platform, one.id) for one in chosen])
    return Archive(target, rates=Rates(None))


def test_every_table_is_considered(tmp_path: Path) -> None:
    Archive(tmp_path / "archive.db").close()
    with closing(sqlite3.connect(tmp_path / "archive.db")) as db:
        rows = db.execute("select name from sqlite_master where type = 'table'").fetchall()
    assert {name for (name,) in rows} - {"sqlite_sequence", "sqlite_stat1"} == (
        CASCADING | REDUCED | WITHOUT_SESSIONS
    )


def test_each_session_is_complete_in_its_copy_and_alone(tmp_path: Path) -> None:
    history = write_history(tmp_path)
    sessions = history.all_sessions()
    assert len(sessions) == 4
    for number, session in enumerate(sessions):
        with closing(copy_sessions(history, [session.ref], tmp_path / f"{number}.db")) as copy:
            assert copy.maintenance.verify() == []
            (found,) = copy.sessions.find(session.id)
            assert replace(found, index=None) == replace(session, index=None)
            messages = list(copy.messages.of_session(found))
            assert messages == list(history.get_session(session.ref).messages)
        with closing(sqlite3.connect(tmp_path / f"{number}.db")) as db:
            assert db.execute("pragma foreign_key_check").fetchall() == []
            assert db.execute("select count(*) from conversations").fetchone() == (1,)


def test_annotations_and_events_of_other_sessions_are_left_out(tmp_path: Path) -> None:
    history = write_history(tmp_path)
    one, other = [session.ref for session in history.all_sessions()][:2]
    for ref, tag in ((one, "mine"), (other, "theirs")):
        history.annotations.tag(ref, [tag])
    with closing(sqlite3.connect(history.archive_path)) as db:
        for number, ref in enumerate((one, other)):
            session = history.find(ref)
            db.execute(
                "insert into hook_event values (?, 1, ?, ?, ?, 'stop', 1, x'00')",
                [str(number), session.platform, session.source, session.id],
            )
        db.execute("insert into hook_event values ('x', 1, null, null, null, 'stop', 1, x'00')")
        db.commit()
    with closing(copy_sessions(history, [one], tmp_path / "copy.db")) as copy:
        assert copy.annotations.tags() == {"mine": 1}
    with closing(sqlite3.connect(tmp_path / "copy.db")) as db:
        assert db.execute("select id from hook_event").fetchall() == [("0",)]
