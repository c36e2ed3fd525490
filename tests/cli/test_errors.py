"""Invalid arguments and unusual output streams: a message, the right exit code, no traceback."""

import subprocess
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.run_command import COMMAND, Shell
from tests.cli.terminal import in_terminal, without_escapes

ID = "7e551011-0000-4000-8000-0000000000cc"
HUGE = "9" * 30


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.root.mkdir()
    return shell


@pytest.fixture
def shell(empty: Shell) -> Shell:
    """Session with a tool call and enough text to fill a pipe."""
    session = Transcript(ID, seed=5, cwd=str(empty.folder))
    session.user("look").run(tool_calls.bash("ls", "a.py"), text="seen " * 40_000)
    session.write(empty.root)
    return empty


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--offset", HUGE],
        ["search", "look", "--offset", HUGE],
        ["show", ID, "--message", HUGE],
        ["show", ID, "--only", ","],
        ["open", ID, HUGE],
        ["open", ID, "nonsense"],
        ["note", ID, "--delete", HUGE],
        ["note", ID, "words", "--edit", HUGE],
        ["export", ID, "--redact="],
        ["export", "--all", "--redact=nonsense", "-o", "there"],
    ],
)
def test_invalid_arguments_are_a_usage_error_without_a_traceback(shell: Shell, arguments: list[str]) -> None:
    result = shell.run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["list", "--since"], "backscroll list"),
        (["search", "look", "--since"], "backscroll search"),
        (["list", "--json=3"], "backscroll list"),
        (["list", "--nope"], "backscroll list"),
        (["archive", "extract", "1", "-o"], "backscroll archive extract"),
        (["archive", "nope"], "backscroll archive"),
        (["--root"], "backscroll"),
    ],
)
def test_every_usage_error_names_the_help_of_its_command(
    shell: Shell, arguments: list[str], command: str
) -> None:
    result = shell.run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.endswith(f"{command} --help' for usage.\n")


@pytest.mark.parametrize("before", [["show"], ["list", "--tag"], ["list", "--branch"], ["note", ID]])
def test_arguments_that_are_not_utf8_are_reported(shell: Shell, before: list[str]) -> None:
    result = shell.run(*before, "a\udcffb")
    assert (result.code, result.out) == (2, "")
    assert "'a\\udcffb' is not valid UTF-8" in result.err


def test_several_sessions_cannot_be_exported_to_a_file(shell: Shell) -> None:
    file = shell.folder / "taken.md"
    file.write_text("mine", encoding="utf-8")
    result = shell.run("export", "--all", "-o", file)
    assert (result.code, file.read_text(encoding="utf-8")) == (2, "mine")
    assert "is a file" in result.err


def test_a_message_number_is_accepted_with_and_without_hash(shell: Shell) -> None:
    shown = shell.run("show", ID, "--only", "tool").out
    number = next(word for word in shown.split() if word.startswith("#"))
    assert (
        shell.run("show", ID, "--message", number).out == shell.run("show", ID, "--message", number[1:]).out
    )
    assert "names no file" in shell.run("open", ID, number).err


def test_a_dumb_terminal_gets_no_control_sequences(shell: Shell) -> None:
    assert "TERM=dumb" in in_terminal(*shell.options, "tui", TERM="dumb")
    assert "\x1b" not in in_terminal(*shell.options, "search", "look", TERM="dumb")
    assert "\x1b" in in_terminal(*shell.options, "search", "look")


@pytest.mark.parametrize("command", ["list", "stats", "search", "recall"])
def test_without_history_commands_print_the_searched_folders(empty: Shell, command: str) -> None:
    words = ["anything"] if command in ("search", "recall") else []
    synced, unsynced = empty.run(command, *words), empty.run(command, *words, "--no-sync")
    assert str(empty.root) in synced.out + synced.err
    assert "backscroll sync" in unsynced.out + unsynced.err
    assert synced.out + unsynced.out == "", "a pipe gets data only"


def test_a_root_that_is_a_broken_link_or_empty_is_named_so(empty: Shell) -> None:
    assert f"{empty.root} (contains no sessions)\n" in empty.run("list").err
    empty.root.rmdir()
    empty.root.symlink_to(empty.folder / "unmounted")
    assert f"{empty.root} (broken link)\n" in empty.run("list").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["recall", " "], "The task is empty."), (["search", "ferry", "--context", "-1"], "--context")],
)
def test_an_empty_task_and_a_negative_number_are_usage_errors(
    shell: Shell, arguments: list[str], message: str
) -> None:
    result = shell.run(*arguments)
    assert result.code == 2
    assert message in result.err


def test_an_empty_home_is_a_usage_error(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.folder)
    result = subprocess.run([COMMAND, "--home", "", "list"], capture_output=True, text=True)
    assert (result.returncode, "--home is empty" in result.stderr) == (2, True)
    assert not (shell.folder / "archive.db").exists()


def test_recall_wraps_lines_between_words_on_a_terminal(shell: Shell) -> None:
    words = " ".join(f"harbour{number}" for number in range(12))
    Transcript(seed=6).user(words).assistant("done").write(shell.root)
    lines = without_escapes(in_terminal(*shell.options, "recall", "harbour3")).splitlines()
    shown = [line for line in lines if "harbour" in line]
    assert len(shown) > 1
    assert max(map(len, shown)) <= 80
    assert {word.strip(",:…") for line in shown for word in line.split() if "harbour" in word} <= {
        *words.split()
    }


def test_secrets_reports_no_sessions_and_no_secrets(shell: Shell) -> None:
    assert shell.run("secrets", "--workspace", "elsewhere").out == "No sessions match.\n"
    assert shell.run("secrets").out == "No secrets found in 1 session.\n"


@pytest.mark.parametrize("command", ["show", "export"])
def test_a_closed_pipe_is_not_an_error(shell: Shell, command: str) -> None:
    shell.sync()
    with subprocess.Popen(
        [COMMAND, *shell.options, command, ID, *(["--full"] if command == "show" else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert (process.stderr.read(), process.wait(60)) == (b"", 0)


@pytest.mark.parametrize("command", ["list", "show", "stats", "export"])
def test_a_closed_standard_output_is_not_an_error(shell: Shell, command: str) -> None:
    ref = f" {ID}" if command in ("show", "export") else ""
    line = f'"$0" "$@" {command}{ref} >&-'
    done = subprocess.run(
        ["/bin/sh", "-c", line, COMMAND, *shell.options], capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert shell.run("archive", "verify").code == 0
