"""Folders of sessions that were moved or renamed are found, and no candidate is chosen by chance."""

import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.model.workspace import MovedWorkspace
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.testing.cursor.messages import assistant, user
from backscroll.testing.cursor.user_data import Home
from backscroll.testing.cursor.workspaces import local_folder
from backscroll.transfer import moved_workspaces
from tests.builders.git_repository import GitRepository

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FILES = ("src/tide.py", "src/clock.py", "docs/index.md")


class Machine:
    """A project with sessions of Claude Code, and the folders around it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "ada"
        self.project = self.home / "projects" / "ferry"
        self.project.mkdir(parents=True)
        self.claude, self.cursor = folder / "claude", folder / "cursor"
        self.claude.mkdir()
        self.cursor.mkdir()
        roots = [NamedRoot("claude-code", self.claude), NamedRoot("cursor", self.cursor)]
        self.history = History(roots=roots, home=folder / "archive")

    def write_files(self, folder: Path | None = None, names: tuple[str, ...] = FILES) -> None:
        for name in names:
            path = (folder or self.project) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

    def write_session(
        self, *, edits: tuple[str, ...] = FILES, commit: str = "", pull_request: str = ""
    ) -> None:
        session = Transcript(session_id="10000000-0000-4000-8000-000000000001", cwd=str(self.project))
        session.user("Fix the clock")
        for name in edits:
            session.run(tool_calls.write(f"{self.project}/{name}", name))
        if commit:
            session.run(tool_calls.bash("git commit -m 'Fix it'", f"[main {commit[:7]}] Fix it"))
        session.assistant("Done.")
        if pull_request:
            session.pr_link(7, pull_request)
        session.write(self.claude)

    def moved(self, *search: Path) -> MovedWorkspace:
        self.history.sync()
        (found,) = self.history.transfers.moved_workspaces(search).workspaces
        assert found.path == str(self.project)
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    with machine.history:
        yield machine


def kinds(workspace: MovedWorkspace) -> dict[str, list[str]]:
    """Return the kinds of evidence of each candidate, by the name of its folder."""
    return {Path(one.path).name: [each.kind for each in one.evidence] for one in workspace.candidates}


def test_an_existing_folder_is_not_moved(machine: Machine) -> None:
    machine.write_session()
    machine.history.sync()
    assert machine.history.transfers.moved_workspaces().workspaces == ()


def test_a_renamed_folder_is_found_by_the_files_that_sessions_edited(machine: Machine) -> None:
    machine.write_files()
    machine.write_session()
    (machine.home / "projects" / "other").mkdir()
    new = machine.project.rename(machine.project.with_name("boat"))
    found = machine.moved()
    assert (found.new_path, found.session_count, found.sources) == (str(new), 1, ("claude-code",))
    assert kinds(found) == {"boat": ["files"]}


def test_a_folder_that_was_moved_elsewhere_is_found_by_its_name(machine: Machine) -> None:
    machine.write_session(edits=())
    new = machine.home / "work" / "ferry"
    new.parent.mkdir()
    machine.project.rename(new)
    found = machine.moved()
    assert (found.new_path, kinds(found)) == (str(new), {"ferry": ["name"]})


def test_a_folder_of_the_same_name_with_other_files_is_not_a_candidate(machine: Machine) -> None:
    machine.write_session()
    shutil.rmtree(machine.project)
    machine.write_files(machine.home / "work" / "ferry", ("index.html", "style.css"))
    assert machine.moved().candidates == ()


def test_a_moved_parent_is_found_with_the_folder_below_it(machine: Machine) -> None:
    machine.write_files()
    machine.write_session()
    new = machine.project.parent.rename(machine.home / "code") / "ferry"
    assert machine.moved().new_path == str(new)


@pytest.mark.skipif(sys.platform != "linux", reason="the id depends on the system")
def test_a_renamed_folder_is_recognized_by_its_inode(machine: Machine) -> None:
    home = Home(machine.cursor, generation=4)
    workspace = local_folder(str(machine.project), inode=machine.project.stat().st_ino)
    home.composer([user("Hello"), assistant("Hi.")], workspace=workspace)
    home.write()
    copy = machine.project.with_name("ferry-copy")
    new = machine.project.with_name("boat")
    machine.write_files()
    shutil.copytree(machine.project, copy)
    machine.project.rename(new)
    found = machine.moved()
    assert (found.new_path, kinds(found)) == (str(new), {"boat": ["inode"]})


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_repository_is_recognized_by_a_commit_and_two_clones_are_not_chosen_from(machine: Machine) -> None:
    machine.project.rmdir()
    repository = GitRepository(machine.project)
    machine.write_files()
    commit = repository.commit("Fix it", NOON)
    machine.write_session(commit=commit)
    machine.write_files(machine.project.with_name("template"))
    new = machine.project.rename(machine.project.with_name("boat"))
    found = machine.moved()
    assert (found.new_path, kinds(found)) == (str(new), {"boat": ["commit", "files"], "template": ["files"]})
    shutil.copytree(new, new.with_name("clone"))
    found = machine.moved()
    assert found.new_path is None
    assert [Path(one.path).name for one in found.candidates] == ["boat", "clone", "template"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("url", ["git@example.org:ada/ferry.git", "https://example.org/ada/ferry"])
def test_a_repository_is_recognized_by_its_remote(machine: Machine, url: str) -> None:
    machine.write_session(edits=(), pull_request="ada/ferry")
    shutil.rmtree(machine.project)
    repository = GitRepository(machine.home / "work" / "boat")
    repository.run("remote", "add", "origin", url)
    found = machine.moved()
    assert kinds(found) == {"boat": ["remote"]}


def test_other_folders_are_searched_only_if_the_user_names_them(machine: Machine, tmp_path: Path) -> None:
    machine.write_session()
    new = tmp_path / "disk" / "a" / "b" / "c" / "boat"
    machine.write_files(new)
    shutil.rmtree(machine.project)
    assert machine.moved().candidates == ()
    assert machine.moved(tmp_path / "disk").new_path == str(new)


def test_a_folder_with_too_many_subfolders_is_not_searched_completely(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write_session()
    shutil.rmtree(machine.project)
    for number in range(10):
        (machine.home / "projects" / str(number)).mkdir()
    machine.history.sync()
    assert machine.history.transfers.moved_workspaces().is_search_complete
    monkeypatch.setattr(moved_workspaces, "_MAX_FOLDERS", 5)
    assert not machine.history.transfers.moved_workspaces().is_search_complete


def test_sessions_that_are_no_longer_in_a_store_are_listed(machine: Machine) -> None:
    machine.write_session()
    machine.history.sync()
    shutil.rmtree(machine.project)
    for path in machine.claude.rglob("*.jsonl"):
        path.unlink()
    assert machine.moved().session_count == 1
