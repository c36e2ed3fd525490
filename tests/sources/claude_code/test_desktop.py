"""What Claude Desktop notes of sessions whose conversation lies elsewhere."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.config import Machine, NamedRoot
from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import Prompt, write_desktop_entry, write_prompts
from tests.sources.claude_code.reading import tell


class Desk:
    """A home of Claude Code, and a folder of Claude Desktop."""

    def __init__(self, folder: Path) -> None:
        self.claude, self.desktop, self.home = folder / ".claude", folder / "Claude", folder / "home"
        for root in (self.claude, self.desktop):
            root.mkdir()
        self.session = Transcript().user("where is the quay?").assistant("behind the dike")

    def open(self, *, turned: bool = False) -> History:
        roots = [NamedRoot("claude-code", root) for root in (self.claude, self.desktop)]
        return History(roots=roots[::-1] if turned else roots, home=self.home)

    def note(self, title: str | None, **fields: object) -> Path:
        self.session.now = self.session.now.replace(microsecond=len(title or "") * 1000)
        return write_desktop_entry(self.desktop, self.session, title=title, **fields)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def one(history: History) -> SessionSummary:
    history.sync()
    (summary,) = history.list_sessions().data
    return summary


@pytest.mark.parametrize(
    ("system", "place"),
    [("darwin", "Library/Application Support/Claude"), ("win32", "AppData/Roaming/Claude")],
)
def test_the_desktops_own_folder_is_a_root_when_it_has_notes(tmp_path: Path, system: str, place: str) -> None:
    root = tmp_path / place
    root.mkdir(parents=True)
    assert root not in ClaudeCode().roots(Machine(tmp_path, {}, system))
    (root / "claude-code-sessions").mkdir()
    assert root in ClaudeCode().roots(Machine(tmp_path, {}, system))


def test_a_session_of_the_agent_mode_is_called_as_its_note_says(tmp_path: Path) -> None:
    desktop = tmp_path / "Library" / "Application Support" / "Claude"
    session = Transcript(cwd="/sessions/sweet-cool-newton").user("where is the quay?").assistant("behind it")
    fields = {"subfolder": "local-agent-mode-sessions", "userSelectedFolders": ["/home/zoe/ferry"]}
    note = write_desktop_entry(desktop, session, title="The quay", **fields)
    session.write(note.with_suffix("") / ".claude")
    (note.with_suffix("") / "local_other.json").write_text("no note, but a file of the session")
    roots = ClaudeCode().roots(Machine(tmp_path, {}, "darwin"))
    assert [root for root in roots if root.is_dir()] == [desktop, note.with_suffix("") / ".claude"]
    with History(roots=[NamedRoot("claude-code", root) for root in roots], home=tmp_path / "home") as history:
        summary = one(history)
        assert (summary.title, summary.message_count) == ("The quay", 2)
        assert history.source_files.audit().is_understood


@pytest.mark.parametrize("turned", [False, True])
def test_a_title_given_in_the_desktop_is_the_sessions(desk: Desk, *, turned: bool) -> None:
    desk.session.ai_title("Quay").write(desk.claude)
    desk.note("The quay behind the dike")
    with desk.open(turned=turned) as history:
        summary = one(history)
        found = history.get_session(summary.id)
    assert summary.title == "The quay behind the dike"
    assert (summary.completeness, len(found.messages)) == ("complete", 2)


def test_a_title_typed_in_the_session_itself_stands_above_the_desktops(desk: Desk) -> None:
    desk.session.custom_title("My quay").write(desk.claude)
    desk.note("The quay behind the dike")
    with desk.open() as history:
        assert one(history).title == "My quay"


def test_a_note_without_a_title_takes_none_away(desk: Desk) -> None:
    desk.session.ai_title("Quay").write(desk.claude)
    desk.note(None)
    with desk.open() as history:
        assert one(history).title == "Quay"


@pytest.mark.parametrize("is_first", [False, True])
def test_notes_that_change_later_than_the_transcript_are_taken_over(desk: Desk, *, is_first: bool) -> None:
    if not is_first:
        desk.session.write(desk.claude)
    desk.note("Quay")
    with desk.open() as history:
        assert one(history).title == "Quay"
    if is_first:
        desk.session.write(desk.claude)
    desk.note("The quay behind the dike", isArchived=True)
    with desk.open() as history:
        summary = one(history)
        assert (summary.title, summary.message_count) == ("The quay behind the dike", 2)
        assert history.source_files.audit().is_understood
        assert [place.sessions for place in history.source_files.audit().places] == [1, 0]
    assert visibility(desk) == ["archived"]
    desk.note("The quay", isArchived=False)
    with desk.open() as history:
        assert one(history).title == "The quay"
    assert visibility(desk) == ["listed"]


def visibility(desk: Desk) -> list[str]:
    with closing(sqlite3.connect(desk.home / "archive.db")) as db:
        return [row[0] for row in db.execute("select visibility from conversations")]


def test_a_session_of_which_only_the_note_is_left_is_lossy(desk: Desk) -> None:
    desk.note("The quay", transcriptUnavailable=True, worktreePath="/home/zoe/quay", worktreeName="quay")
    with desk.open() as history:
        summary = one(history)
        assert (summary.title, summary.completeness, summary.message_count) == ("The quay", "lossy", 0)
        assert summary.workspace_path == desk.session.cwd
        assert summary.created_at is not None
        found = history.get_session(summary.id)
        assert found.messages == ()


def test_a_note_and_prompts_of_a_lost_session_are_one(desk: Desk) -> None:
    desk.note("The quay")
    typed = Prompt("where is the quay?", session_id=desk.session.session_id)
    write_prompts(desk.claude, [typed])
    with desk.open() as history:
        summary = one(history)
        assert (summary.title, summary.completeness, summary.message_count) == ("The quay", "lossy", 1)


def test_what_the_note_said_stays_when_it_goes(desk: Desk) -> None:
    desk.session.write(desk.claude)
    desk.note("The quay", isArchived=True)
    with desk.open() as history:
        one(history)
        shutil.rmtree(desk.desktop / "claude-code-sessions")
        summary = one(history)
        assert (summary.title, summary.is_gone) == ("The quay", False)


def test_a_session_that_was_forgotten_does_not_come_back_by_its_note(desk: Desk) -> None:
    desk.session.write(desk.claude)
    desk.note("The quay")
    with desk.open() as history:
        history.archive_admin.forget(one(history).ref)
        desk.note("The quay behind the dike")
        history.sync()
        assert history.list_sessions().data == ()


def test_nothing_but_what_is_known_to_be_harmless_is_read_of_a_note(desk: Desk) -> None:
    path = desk.note("The quay", emailAddress="zoe@example.org", mcpServers={"x": {"token": "abcdefghij"}})
    told = tell(path, "notes")
    assert "zoe@" not in repr(told)
    assert "abcdefghij" not in repr(told)
    source = ClaudeCode()
    (unit,) = source.units(desk.desktop)
    assert list(source.raw_records(unit)) == []


def test_a_session_that_never_began_is_counted_and_not_told(desk: Desk) -> None:
    told = tell(desk.note("The quay", cliSessionId=None), "notes")
    assert (told.sessions, told.counts.records, told.counts.ignored) == ((), 1, 1)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\x00\x00", '"text"'])
def test_a_file_that_is_no_note_is_a_problem(desk: Desk, content: str) -> None:
    path = desk.note("The quay")
    path.write_text(content)
    told = tell(path, "notes")
    assert (len(told.problems), told.counts.records, told.counts.problems) == (1, 1, 1)


@pytest.mark.parametrize("value", [None, 7, [], {}, True, "", "2026-10-03T07:00:00Z"])
def test_any_value_may_stand_in_any_field(desk: Desk, value: object) -> None:
    path = desk.note("The quay")
    names = json.loads(path.read_text())
    for name in names:
        path.write_text(json.dumps(names | {name: value}))
        assert tell(path, "notes").counts.records == 1
