"""Roots, units and workspaces of Claude Code."""

from pathlib import Path

import pytest

from backscroll.config import Machine
from backscroll.model.workspace import Workspace
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_empty_stub, write_session_index
from tests.sources.claude_code.read_helpers import read_file, read_session


def roots(home: Path, system: str = "linux", **environ: str) -> list[Path]:
    return ClaudeCode().roots(Machine(home, environ, system))


def test_both_default_roots_are_used_without_configuration(tmp_path: Path) -> None:
    assert roots(tmp_path) == [tmp_path / ".claude", tmp_path / ".config" / "claude"]
    assert roots(tmp_path, XDG_CONFIG_HOME="/cfg")[1] == Path("/cfg/claude")


def test_roots_from_the_environment_replace_the_defaults(tmp_path: Path) -> None:
    named = roots(tmp_path, CLAUDE_CONFIG_DIR=" ~/work , /srv/claude/projects ,, ~/work")
    assert named == [tmp_path / "work", Path("/srv/claude")]


def test_sibling_folders_with_a_history_are_found(tmp_path: Path) -> None:
    (tmp_path / ".claude-work" / "projects").mkdir(parents=True)
    (tmp_path / ".claude-empty").mkdir()
    assert tmp_path / ".claude-work" in roots(tmp_path)
    assert tmp_path / ".claude-empty" not in roots(tmp_path)


@pytest.mark.parametrize(
    ("system", "place"),
    [("darwin", "Library/Application Support/Claude"), ("win32", "AppData/Roaming/Claude")],
)
def test_agent_mode_has_a_root_per_session(tmp_path: Path, system: str, place: str) -> None:
    root = tmp_path / place / "local-agent-mode-sessions" / "a" / "local_1" / ".claude"
    root.mkdir(parents=True)
    assert root in roots(tmp_path, system)


def test_only_files_with_a_uuid_as_name_are_sessions(tmp_path: Path) -> None:
    session = Transcript().user("a")
    path = session.write(tmp_path)
    (path.parent / "notes.jsonl").write_text("{}\n")
    (path.parent / "agent-abc.jsonl").write_text("{}\n")
    (path.parent / "readme.md").write_text("x")
    kinds = {Path(unit.path).name: unit.kind for unit in ClaudeCode().units(tmp_path)}
    assert kinds == {path.name: "session", "notes.jsonl": "other", "agent-abc.jsonl": "agent"}


def test_a_linked_project_is_followed_and_a_link_below_it_is_not(tmp_path: Path) -> None:
    session = Transcript().user("a")
    path = session.write(tmp_path / "elsewhere")
    (tmp_path / "projects").mkdir()
    linked = tmp_path / "projects" / "linked"
    linked.symlink_to(path.parent)
    (linked / session.session_id).symlink_to(path.parent)
    (linked / "more").symlink_to(path.parent)
    source = ClaudeCode()
    (unit,) = source.units(tmp_path)
    assert (unit.path, unit.session_id) == (str(linked / path.name), session.session_id)
    for changed in (linked, linked / path.name):
        assert source.units_at(tmp_path, [str(changed)]) == [unit]
    assert source.units_at(tmp_path, [str(linked / "more" / path.name)]) == []


def test_an_empty_file_is_neither_a_session_nor_a_problem(tmp_path: Path) -> None:
    content = read_file(write_empty_stub(tmp_path, Transcript(), cwd="/home/zoe/other"))
    assert (content.sessions, content.problems, content.counts.records) == ((), (), 0)


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    content = read_file(tmp_path / "gone.jsonl")
    assert [problem.reason for problem in content.problems] == ["cannot be read: No such file or directory"]


def workspace(session: Transcript, root: Path) -> Workspace | None:
    return read_session(session, root).closing.workspace


def test_the_start_folder_takes_precedence_over_later_folders(tmp_path: Path) -> None:
    session = Transcript(cwd="/home/zoe/my_app.v2").user("a", cwd="/tmp/x").user("b").user("c", cwd="/tmp/y")
    found = workspace(session, tmp_path)
    assert found is not None
    assert (found.path, found.name) == ("/home/zoe/my_app.v2", "my_app.v2")


def test_a_relocated_session_belongs_to_its_new_folder(tmp_path: Path) -> None:
    found = workspace(Transcript().user("a").relocated("/home/zoe/new"), tmp_path)
    assert found is not None
    assert found.path == "/home/zoe/new"


def test_the_first_folder_is_used_if_none_matches_the_project_key(tmp_path: Path) -> None:
    found = workspace(Transcript(key="chosen-by-a-host").user("a"), tmp_path)
    assert found is not None
    assert found.evidence == "first cwd"


def test_without_a_folder_the_session_index_is_used_and_the_key_is_never_decoded(tmp_path: Path) -> None:
    session = Transcript(cwd="/nowhere/zoe/my-app").user("a", cwd=None)
    assert workspace(session, tmp_path) is None
    assert read_session(session, tmp_path).closing.metadata["encoded_path"] == "-nowhere-zoe-my-app"
    write_session_index(tmp_path, [session])
    found = workspace(session, tmp_path)
    assert found is not None
    assert (found.path, found.evidence) == ("/nowhere/zoe/my-app", "sessions-index.json")


def test_a_folder_on_disk_that_matches_the_key_is_the_last_resort(tmp_path: Path) -> None:
    project = tmp_path / "my-app.v2"
    project.mkdir()
    session = Transcript(cwd=str(project)).user("a", cwd=None)
    found = workspace(session, tmp_path / "root")
    assert found is not None
    assert found.path == str(project)
