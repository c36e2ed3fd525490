"""An archive that cannot be written, and roots that do not exist."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Result, Shell, backscroll
from tests.cli.unprivileged import run_unprivileged


class ReadOnlyShell(Shell):
    """Runs the command on an archive in which nothing can be written."""

    def run_read_only(self, *arguments: str) -> Result:
        return run_unprivileged(*self.options, *arguments)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[ReadOnlyShell]:
    """An archive with one session. A second one is not synced yet."""
    shell = ReadOnlyShell(tmp_path)
    Transcript(seed=1).user("the lighthouse question").assistant("an answer").write(shell.root)
    shell.sync()
    Transcript(seed=2).user("a later question").write(shell.root)
    paths = [shell.home, *shell.home.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield shell
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "1"),
        ("search", "lighthouse"),
        ("search", "--exact", "the lighthouse"),
        ("stats",),
        ("export", "1"),
    ],
)
def test_a_read_only_archive_can_be_read_without_a_sync(
    shell: ReadOnlyShell, arguments: tuple[str, ...]
) -> None:
    result = shell.run_read_only(*arguments, "--no-sync")
    assert (result.code, result.err) == (0, "")
    assert "lighthouse" in result.out or "1 session" in result.out


def test_a_read_only_archive_is_listed_with_a_warning_that_it_could_not_sync(shell: ReadOnlyShell) -> None:
    result = shell.run_read_only("list", "--json")
    assert result.code == 0
    assert len(json.loads(result.out)["data"]) == 1
    assert result.err.startswith(f"Could not sync. The archive {shell.home / 'archive.db'} is read-only.")
    assert result.err.endswith("Results may be out of date.\n")


@pytest.mark.parametrize(
    "arguments", [("sync",), ("tag", "1", "flaky"), ("archive", "forget", "ID", "--yes")]
)
def test_a_command_that_writes_reports_a_read_only_archive(
    shell: ReadOnlyShell, arguments: tuple[str, ...]
) -> None:
    listed = json.loads(shell.run_read_only("list", "--no-sync", "--json").out)
    id_ = listed["data"][0]["id"]
    result = shell.run_read_only(*(id_ if argument == "ID" else argument for argument in arguments))
    assert (result.code, result.out) == (1, "")
    assert "is read-only" in result.err


def test_a_read_only_archive_is_not_read_without_its_write_ahead_log(shell: ReadOnlyShell) -> None:
    log = shell.home / "archive.db-wal"
    shell.home.chmod(0o755)
    log.write_bytes(b"not a log, but not empty either")
    shell.home.chmod(0o555)
    assert shell.run_read_only("list", "--no-sync").code == 1


@pytest.mark.parametrize(("name", "state"), [("missing", "does not exist"), ("file", "is not a folder")])
def test_a_root_that_is_not_a_folder_gives_a_warning(tmp_path: Path, name: str, state: str) -> None:
    (tmp_path / "file").touch()
    root = tmp_path / name
    warning = f"Warning: the root claude-code={root} {state}.\n"
    home = ("--home", tmp_path / "home")
    assert backscroll(*home, "--root", f"claude-code={root}", "list").err.startswith(warning)
    assert backscroll(*home, "sync", BACKSCROLL_ROOTS=f"claude-code={root}").err == warning
    result = backscroll(*home, "--root", f"claude-code={root}", "list", "--json")
    assert (json.loads(result.out)["data"], result.code) == ([], 0)
