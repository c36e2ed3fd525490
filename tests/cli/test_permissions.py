"""Files and folders that the user may not read."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Result
from tests.cli.unprivileged import run_unprivileged


class Denied:
    """Runs the command on a history in which one folder cannot be read."""

    def __init__(self, source: str, root: Path, folder: Path, home: Path) -> None:
        self.root, self.folder = root, folder
        self._options = ("--home", str(home), "--root", f"{source}={root}")

    def run(self, *arguments: str, mode: int = 0) -> Result:
        self.folder.chmod(mode)
        try:
            return run_unprivileged(*self._options, *arguments)
        finally:
            self.folder.chmod(0o755)


def write_claude(root: Path) -> None:
    Transcript(seed=1).user("a question").assistant("an answer").write(root)


def write_cursor(root: Path) -> None:
    home = cursor.Home(root)
    home.composer(
        [cursor.user("a question"), cursor.assistant("an answer")], workspace=cursor.SHOP, name="one"
    )
    home.write()


def write_cursor_cli(root: Path) -> None:
    cursor_cli.Home(root).chat([cursor.user("a question"), cursor.assistant("an answer")], cwd="/home/dev")


PLACES: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "claude-code": ("claude-code", "projects", write_claude),
    "claude-code root": ("claude-code", "", write_claude),
    "cursor": ("cursor", "User/globalStorage", write_cursor),
    "cursor root": ("cursor", "", write_cursor),
    "cursor-cli": ("cursor-cli", "chats", write_cursor_cli),
    "cursor-cli root": ("cursor-cli", "", write_cursor_cli),
}


@pytest.fixture(params=PLACES)
def denied(request: pytest.FixtureRequest, tmp_path: Path) -> Denied:
    source, folder, write = PLACES[request.param]
    write(tmp_path / "root")
    return Denied(source, tmp_path / "root", tmp_path / "root" / folder, tmp_path / "home")


def test_list_names_a_folder_without_permission(denied: Denied) -> None:
    result = denied.run("list")
    assert result.code == 0
    assert f"Cannot read {denied.folder}: permission denied." in result.err
    assert result.out == ""
    assert "No history found" not in result.err


def test_sync_names_a_folder_without_permission_and_exits_with_three(denied: Denied) -> None:
    for _ in range(2):
        result = denied.run("sync")
        assert result.code == 3
        assert f"Cannot read {denied.folder}: permission denied." in result.out
    assert result.out.startswith("No changes.\n")
    document = json.loads(denied.run("sync", "--json").out)
    assert (document["unreadable"], document["problems"]) == ([str(denied.folder)], 1)


def test_doctor_names_a_folder_without_permission_and_does_not_advise_a_bug_report(denied: Denied) -> None:
    result = denied.run("doctor")
    assert result.code == 3
    assert f"{denied.folder}, folder: cannot be read: Permission denied" in result.out
    assert "--shape" not in result.out
    assert "No history found" not in result.out
    (problem,) = json.loads(denied.run("doctor", "--json").out)["problems"]
    assert problem["code"] == "permission-denied"


def test_sessions_in_a_folder_without_permission_are_kept_and_not_gone(denied: Denied) -> None:
    assert denied.run("sync", mode=0o755).code == 0
    (session,) = json.loads(denied.run("list", "--json").out)["data"]
    assert not session["is_gone"]
    repaired = denied.run("sync", mode=0o755)
    assert repaired.code == 0
    assert repaired.out.startswith("Up to date.\n")


def test_a_folder_that_can_be_listed_but_not_entered_is_named(tmp_path: Path) -> None:
    write_claude(tmp_path / "root")
    (project,) = (tmp_path / "root" / "projects").iterdir()
    denied = Denied("claude-code", tmp_path / "root", project, tmp_path / "home")
    assert denied.run("sync", mode=0o755).code == 0
    result = denied.run("sync", mode=0o444)
    assert result.code == 3
    assert f"Cannot read {project}: permission denied." in result.out
    assert json.loads(denied.run("list", "--gone", "--json", mode=0o444).out)["data"] == []
