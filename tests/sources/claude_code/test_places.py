"""Where transcripts are looked for, and whose they are."""

from pathlib import Path

import pytest

from backscroll.config import Machine
from backscroll.model import Workspace
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_empty_stub, write_session_index
from tests.sources.claude_code.reading import only, tell


def roots(home: Path, system: str = "linux", **environ: str) -> list[Path]:
    return ClaudeCode().roots(Machine(home, environ, system))


def test_without_a_word_both_usual_places_are_looked_at(tmp_path: Path) -> None:
    assert roots(tmp_path) == [tmp_path / ".claude", tmp_path / ".config" / "claude"]
    assert roots(tmp_path, XDG_CONFIG_HOME="/cfg")[1] == Path("/cfg/claude")


def test_the_environment_may_name_several_and_then_only_they_count(tmp_path: Path) -> None:
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
def test_the_desktops_agent_mode_has_a_root_per_session(tmp_path: Path, system: str, place: str) -> None:
    root = tmp_path / place / "local-agent-mode-sessions" / "a" / "local_1" / ".claude"
    root.mkdir(parents=True)
    assert root in roots(tmp_path, system)


def test_only_files_named_by_a_uuid_are_sessions(tmp_path: Path) -> None:
    session = Transcript().user("a")
    path = session.write(tmp_path)
    (path.parent / "notes.jsonl").write_text("{}\n")
    (path.parent / "agent-abc.jsonl").write_text("{}\n")
    (path.parent / "readme.md").write_text("x")
    kinds = {Path(unit.path).name: unit.kind for unit in ClaudeCode().units(tmp_path)}
    assert kinds == {path.name: "session", "notes.jsonl": "other", "agent-abc.jsonl": "agent"}


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    session = Transcript().user("a")
    path = session.write(tmp_path / "elsewhere")
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "linked").symlink_to(path.parent)
    assert list(ClaudeCode().units(tmp_path)) == []


def test_an_empty_stub_is_no_session_and_no_problem(tmp_path: Path) -> None:
    told = tell(write_empty_stub(tmp_path, Transcript(), cwd="/home/zoe/other"))
    assert (told.sessions, told.problems, told.counts.records) == ((), (), 0)


def test_a_file_that_vanished_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    told = tell(tmp_path / "gone.jsonl")
    assert [problem.reason for problem in told.problems] == ["cannot be read: No such file or directory"]


def workspace(session: Transcript, root: Path) -> Workspace | None:
    return only(session, root).closing.workspace


def test_the_launch_folder_wins_over_where_the_session_went(tmp_path: Path) -> None:
    session = Transcript(cwd="/home/zoe/my_app.v2").user("a", cwd="/tmp/x").user("b").user("c", cwd="/tmp/y")
    found = workspace(session, tmp_path)
    assert found is not None
    assert (found.path, found.name) == ("/home/zoe/my_app.v2", "my_app.v2")


def test_a_session_that_moved_belongs_where_it_went(tmp_path: Path) -> None:
    found = workspace(Transcript().user("a").relocated("/home/zoe/new"), tmp_path)
    assert found is not None
    assert found.path == "/home/zoe/new"


def test_a_folder_whose_name_fits_no_cwd_takes_the_first(tmp_path: Path) -> None:
    found = workspace(Transcript(key="chosen-by-a-host").user("a"), tmp_path)
    assert found is not None
    assert found.evidence == "first cwd"


def test_without_any_cwd_the_index_is_asked_and_the_name_is_never_decoded(tmp_path: Path) -> None:
    session = Transcript(cwd="/nowhere/zoe/my-app").user("a", cwd=None)
    assert workspace(session, tmp_path) is None
    assert only(session, tmp_path).closing.metadata["encoded_path"] == "-nowhere-zoe-my-app"
    write_session_index(tmp_path, [session])
    found = workspace(session, tmp_path)
    assert found is not None
    assert (found.path, found.evidence) == ("/nowhere/zoe/my-app", "sessions-index.json")


def test_a_folder_on_disk_that_fits_the_name_is_the_last_resort(tmp_path: Path) -> None:
    project = tmp_path / "my-app.v2"
    project.mkdir()
    session = Transcript(cwd=str(project)).user("a", cwd=None)
    found = workspace(session, tmp_path / "root")
    assert found is not None
    assert found.path == str(project)
