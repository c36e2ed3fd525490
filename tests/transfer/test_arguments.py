"""Invalid folders and ids are refused with one sentence and exit code 2, and nothing is written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from backscroll import History
from backscroll.config import Machine as MachineConfig
from backscroll.config import NamedRoot, given_maps, given_path
from backscroll.errors import UsageError
from tests.cli.run_command import Shell
from tests.transfer.test_killed_migration import ONE, write_claude_code


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "ferry").mkdir()
    (tmp_path / "boat").mkdir()
    shell = Shell(tmp_path)
    write_claude_code(shell.root, str(tmp_path / "ferry"))
    shell.sync()
    return shell


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("migrate", ONE, "--to", ""), "The target folder is empty"),
        (("migrate", ONE, "--to", "~nosuch/ferry"), "names the user '~nosuch', who does not exist"),
        (("migrate", ONE, "--to", "{root}"), "belongs to a tool"),
        (("migrate", ONE, "--to", "{root}/projects"), "belongs to a tool"),
        (("migrate", ONE, "--to", "{user}/.cursor"), "belongs to a tool"),
        (("migrate-workspace", "{old}", "", "--mode", "move"), "The target folder is empty"),
        (("migrate-workspace", "", "{new}"), "The old folder is empty"),
        (("migrate-workspace", "~nosuch", "{new}"), "names the user '~nosuch'"),
        (("migrate-workspace", "{old}", "{root}"), "belongs to a tool"),
        (("undo", ""), "The id of the change is empty"),
    ],
)
def test_an_invalid_argument_is_refused(shell: Shell, arguments: tuple[str, ...], reason: str) -> None:
    (shell.folder / "boat" / "old").mkdir()
    assert shell.run("migrate", ONE, "--to", shell.folder / "boat" / "old", "--yes").code == 0
    user = shell.folder / "user"
    (user / ".cursor").mkdir(parents=True)
    before = files(shell.root)
    names = {"root": shell.root, "old": shell.folder / "ferry", "new": shell.folder / "boat", "user": user}
    result = shell.run(*(one.format(**names) for one in arguments), "--yes", HOME=str(user))
    assert result.code == 2, result.err
    assert reason in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert files(shell.root) == before


@pytest.mark.parametrize("pair", ["/=/", "//=/x", "a=b", "~nosuch=/x", "/home/ada=~nosuch"])
def test_an_invalid_map_is_refused(shell: Shell, pair: str) -> None:
    backup = shell.folder / "backup.zip"
    assert shell.run("backup", "create", "--output", backup).code == 0
    result = shell.run("backup", "restore", backup, "--map", pair, "--yes")
    assert (result.code, len(result.err.strip().splitlines())) == (2, 1), result.err


@pytest.mark.parametrize("maps", [{"/": "/x"}, {"": "/x"}, {"/x": ""}, {"relative": "/x"}, {"/x": "a\0b"}])
def test_the_library_refuses_an_invalid_map(maps: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        given_maps(maps)


def test_folders_of_windows_can_be_mapped() -> None:
    maps = {r"C:\Users\ada": "/home/ada", r"\\host\share": "/mnt"}
    assert given_maps(maps) == tuple(maps.items())


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", "~nosuch"])
def test_a_path_that_cannot_exist_is_a_usage_error(path: str) -> None:
    with pytest.raises(UsageError):
        given_path("target folder", path)


@pytest.mark.parametrize(
    "call",
    [
        lambda history, root: history.migrate_session(ONE, ""),
        lambda history, root: history.migrate_session(ONE, root),
        lambda history, root: history.migrate_workspace("", root.parent),
        lambda history, root: history.migrate_workspace(root.parent, ""),
        lambda history, root: history.undo_change(""),
    ],
)
def test_the_library_refuses_the_same_arguments(
    shell: Shell, call: Callable[[History, Path], object]
) -> None:
    with (
        History(home=shell.home, roots=[NamedRoot("claude-code", shell.root)]) as history,
        pytest.raises(UsageError),
    ):
        call(history, shell.root)


def test_a_worktree_below_the_folder_of_a_tool_is_a_valid_target(shell: Shell) -> None:
    worktree = shell.folder / ".cursor" / "worktrees" / "ferry" / "one"
    worktree.mkdir(parents=True)
    (worktree / ".git").write_text("gitdir: elsewhere")
    machine = MachineConfig(shell.folder)
    roots = [NamedRoot("claude-code", shell.root)]
    with History(home=shell.home, roots=roots, machine=machine) as history:
        assert history.migrate_session(ONE, worktree, mode="move").success_count == 1
        with pytest.raises(UsageError, match="belongs to a tool"):
            history.migrate_session(ONE, worktree.parent)
