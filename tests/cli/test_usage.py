"""Whatever is typed, and wherever the output goes: a sentence, the right exit code, never a traceback."""

import subprocess
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.running import COMMAND, Shell
from tests.cli.terminal import in_terminal

ID = "7e551011-0000-4000-8000-0000000000cc"
HUGE = "9" * 30


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.root.mkdir()
    return shell


@pytest.fixture
def shell(empty: Shell) -> Shell:
    """A session that looks at a file and says enough to fill a pipe."""
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
def test_nonsense_is_wrong_usage_and_said_in_a_sentence(shell: Shell, arguments: list[str]) -> None:
    ran = shell.run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("before", [["show"], ["list", "--tag"], ["list", "--branch"], ["note", ID]])
def test_bytes_that_are_no_text_are_said(shell: Shell, before: list[str]) -> None:
    ran = shell.run(*before, "a\udcffb")
    assert (ran.code, ran.out) == (2, "")
    assert "'a\\udcffb' is not UTF-8" in ran.err


def test_a_file_is_no_folder_for_several_sessions(shell: Shell) -> None:
    file = shell.folder / "taken.md"
    file.write_text("mine", encoding="utf-8")
    ran = shell.run("export", "--all", "-o", file)
    assert (ran.code, file.read_text(encoding="utf-8")) == (2, "mine")
    assert "is a file" in ran.err


def test_a_message_is_named_as_it_is_shown(shell: Shell) -> None:
    shown = shell.run("show", ID, "--only", "tool").out
    number = next(word for word in shown.split() if word.startswith("#"))
    assert (
        shell.run("show", ID, "--message", number).out == shell.run("show", ID, "--message", number[1:]).out
    )
    assert "is about no file" in shell.run("open", ID, number).err


def test_a_terminal_that_can_only_print_is_not_drawn_on(shell: Shell) -> None:
    assert "TERM=dumb" in in_terminal(*shell.options, "tui", TERM="dumb")
    assert "\x1b" not in in_terminal(*shell.options, "search", "look", TERM="dumb")
    assert "\x1b" in in_terminal(*shell.options, "search", "look")


@pytest.mark.parametrize("command", ["list", "stats", "search"])
def test_whoever_has_no_history_is_told_where_was_looked(empty: Shell, command: str) -> None:
    words = ["anything"] if command == "search" else []
    assert str(empty.root) in empty.run(command, *words).out
    assert "backscroll sync" in empty.run(command, *words, "--no-sync").out


def test_no_session_is_said_and_not_counted(shell: Shell) -> None:
    assert shell.run("secrets", "--workspace", "elsewhere").out == "No session fits.\n"
    assert shell.run("secrets").out == "No secret was found in 1 session.\n"


@pytest.mark.parametrize("command", ["show", "export"])
def test_a_reader_who_has_seen_enough_is_no_failure(shell: Shell, command: str) -> None:
    shell.run("sync")
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
def test_output_that_nobody_wants_goes_nowhere(shell: Shell, command: str) -> None:
    ref = f" {ID}" if command in ("show", "export") else ""
    line = f'"$0" "$@" {command}{ref} >&-'
    done = subprocess.run(
        ["/bin/sh", "-c", line, COMMAND, *shell.options], capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert shell.run("archive", "verify").code == 0
