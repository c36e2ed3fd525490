"""Metadata files of Claude Desktop."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.config import Machine, NamedRoot
from backscroll.history.history import History
from backscroll.model.session import SessionSummary
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import Prompt, write_desktop_entry, write_prompts
from tests.sources.claude_code.read_helpers import read_file


class DesktopSetup:
    """A root of Claude Code, a folder of Claude Desktop, and one session."""

    def __init__(self, folder: Path) -> None:
        self.claude, self.desktop, self.home = folder / ".claude", folder / "Claude", folder / "home"
        for root in (self.claude, self.desktop):
            root.mkdir()
        self.session = Transcript().user("where is the quay?").assistant("behind the dike")

    def open(self, *, reverse_roots: bool = False) -> History:
        roots = [NamedRoot("claude-code", root) for root in (self.claude, self.desktop)]
        return History(roots=roots[::-1] if reverse_roots else roots, home=self.home)

    def write_metadata(self, title: str | None, **fields: object) -> Path:
        self.session.now = self.session.now.replace(microsecond=len(title or "") * 1000)
        return write_desktop_entry(self.desktop, self.session, title=title, **fields)


@pytest.fixture
def desktop_setup(tmp_path: Path) -> DesktopSetup:
    return DesktopSetup(tmp_path)


def sync_only_session(history: History) -> SessionSummary:
    history.sync()
    (summary,) = history.list_sessions().data
    return summary


@pytest.mark.parametrize(
    ("system", "place"),
    [("darwin", "Library/Application Support/Claude"), ("win32", "AppData/Roaming/Claude")],
)
def test_the_folder_of_claude_desktop_is_a_root_if_it_has_session_metadata(
    tmp_path: Path, system: str, place: str
) -> None:
    root = tmp_path / place
    root.mkdir(parents=True)
    assert root not in ClaudeCode().roots(Machine(tmp_path, {}, system))
    (root / "claude-code-sessions").mkdir()
    assert root in ClaudeCode().roots(Machine(tmp_path, {}, system))


def test_an_agent_mode_session_has_the_title_from_its_metadata(tmp_path: Path) -> None:
    desktop = tmp_path / "Library" / "Application Support" / "Claude"
    session = Transcript(cwd="/sessions/sweet-cool-newton").user("where is the quay?").assistant("behind it")
    fields = {"subfolder": "local-agent-mode-sessions", "userSelectedFolders": ["/home/zoe/ferry"]}
    metadata_path = write_desktop_entry(desktop, session, title="The quay", **fields)
    session.write(metadata_path.with_suffix("") / ".claude")
    (metadata_path.with_suffix("") / "local_other.json").write_text("a file of the session, not metadata")
    roots = ClaudeCode().roots(Machine(tmp_path, {}, "darwin"))
    assert [root for root in roots if root.is_dir()] == [desktop, metadata_path.with_suffix("") / ".claude"]
    with History(roots=[NamedRoot("claude-code", root) for root in roots], home=tmp_path / "home") as history:
        summary = sync_only_session(history)
        assert (summary.title, summary.message_count) == ("The quay", 2)
        assert history.source_files.audit().is_understood


@pytest.mark.parametrize("reverse_roots", [False, True])
def test_a_title_from_claude_desktop_is_the_title_of_the_session(
    desktop_setup: DesktopSetup, *, reverse_roots: bool
) -> None:
    desktop_setup.session.ai_title("Quay").write(desktop_setup.claude)
    desktop_setup.write_metadata("The quay behind the dike")
    with desktop_setup.open(reverse_roots=reverse_roots) as history:
        summary = sync_only_session(history)
        found = history.get_session(summary.id)
    assert summary.title == "The quay behind the dike"
    assert (summary.completeness, len(found.messages)) == ("complete", 2)


def test_a_custom_title_takes_precedence_over_the_title_from_claude_desktop(
    desktop_setup: DesktopSetup,
) -> None:
    desktop_setup.session.custom_title("My quay").write(desktop_setup.claude)
    desktop_setup.write_metadata("The quay behind the dike")
    with desktop_setup.open() as history:
        assert sync_only_session(history).title == "My quay"


def test_metadata_without_a_title_does_not_remove_the_title(desktop_setup: DesktopSetup) -> None:
    desktop_setup.session.ai_title("Quay").write(desktop_setup.claude)
    desktop_setup.write_metadata(None)
    with desktop_setup.open() as history:
        assert sync_only_session(history).title == "Quay"


@pytest.mark.parametrize("is_first", [False, True])
def test_metadata_that_changes_after_the_transcript_is_used(
    desktop_setup: DesktopSetup, *, is_first: bool
) -> None:
    if not is_first:
        desktop_setup.session.write(desktop_setup.claude)
    desktop_setup.write_metadata("Quay")
    with desktop_setup.open() as history:
        assert sync_only_session(history).title == "Quay"
    if is_first:
        desktop_setup.session.write(desktop_setup.claude)
    desktop_setup.write_metadata("The quay behind the dike", isArchived=True)
    with desktop_setup.open() as history:
        summary = sync_only_session(history)
        assert (summary.title, summary.message_count) == ("The quay behind the dike", 2)
        assert history.source_files.audit().is_understood
        assert [place.sessions for place in history.source_files.audit().places] == [1, 0]
    assert visibility(desktop_setup) == ["archived"]
    desktop_setup.write_metadata("The quay", isArchived=False)
    with desktop_setup.open() as history:
        assert sync_only_session(history).title == "The quay"
    assert visibility(desktop_setup) == ["listed"]


def visibility(desktop_setup: DesktopSetup) -> list[str]:
    with closing(sqlite3.connect(desktop_setup.home / "archive.db")) as db:
        return [row[0] for row in db.execute("select visibility from conversations")]


def test_a_session_with_only_metadata_is_lossy(desktop_setup: DesktopSetup) -> None:
    desktop_setup.write_metadata(
        "The quay", transcriptUnavailable=True, worktreePath="/home/zoe/quay", worktreeName="quay"
    )
    with desktop_setup.open() as history:
        summary = sync_only_session(history)
        assert (summary.title, summary.completeness, summary.message_count) == ("The quay", "lossy", 0)
        assert summary.workspace_path == desktop_setup.session.cwd
        assert summary.created_at is not None
        found = history.get_session(summary.id)
        assert found.messages == ()


def test_metadata_and_prompts_of_a_deleted_session_are_one_session(desktop_setup: DesktopSetup) -> None:
    desktop_setup.write_metadata("The quay")
    typed = Prompt("where is the quay?", session_id=desktop_setup.session.session_id)
    write_prompts(desktop_setup.claude, [typed])
    with desktop_setup.open() as history:
        summary = sync_only_session(history)
        assert (summary.title, summary.completeness, summary.message_count) == ("The quay", "lossy", 1)


def test_deleting_the_metadata_keeps_the_title(desktop_setup: DesktopSetup) -> None:
    desktop_setup.session.write(desktop_setup.claude)
    desktop_setup.write_metadata("The quay", isArchived=True)
    with desktop_setup.open() as history:
        sync_only_session(history)
        shutil.rmtree(desktop_setup.desktop / "claude-code-sessions")
        summary = sync_only_session(history)
        assert (summary.title, summary.is_gone) == ("The quay", False)


def test_metadata_does_not_restore_a_forgotten_session(desktop_setup: DesktopSetup) -> None:
    desktop_setup.session.write(desktop_setup.claude)
    desktop_setup.write_metadata("The quay")
    with desktop_setup.open() as history:
        history.archive_admin.forget(sync_only_session(history).ref)
        desktop_setup.write_metadata("The quay behind the dike")
        history.sync()
        assert history.list_sessions().data == ()


def test_only_listed_fields_of_the_metadata_are_read(desktop_setup: DesktopSetup) -> None:
    path = desktop_setup.write_metadata(
        "The quay", emailAddress="zoe@example.org", mcpServers={"x": {"token": "abcdefghij"}}
    )
    content = read_file(path, "notes")
    assert "zoe@" not in repr(content)
    assert "abcdefghij" not in repr(content)
    source = ClaudeCode()
    (unit,) = source.units(desktop_setup.desktop)
    assert list(source.raw_records(unit)) == []


def test_metadata_of_a_session_that_was_never_started_is_ignored(desktop_setup: DesktopSetup) -> None:
    content = read_file(desktop_setup.write_metadata("The quay", cliSessionId=None), "notes")
    assert (content.sessions, content.counts.records, content.counts.ignored) == ((), 1, 1)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00\x00", '"text"'])
def test_an_invalid_metadata_file_is_a_problem(desktop_setup: DesktopSetup, text: str) -> None:
    path = desktop_setup.write_metadata("The quay")
    path.write_text(text)
    content = read_file(path, "notes")
    assert (len(content.problems), content.counts.records, content.counts.problems) == (1, 1, 1)


@pytest.mark.parametrize("value", [None, 7, [], {}, True, "", "2026-10-03T07:00:00Z"])
def test_every_field_of_the_metadata_accepts_any_value(desktop_setup: DesktopSetup, value: object) -> None:
    path = desktop_setup.write_metadata("The quay")
    names = json.loads(path.read_text())
    for name in names:
        path.write_text(json.dumps(names | {name: value}))
        assert read_file(path, "notes").counts.records == 1
