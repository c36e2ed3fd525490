"""Commands named in messages, and the list of commands in the help."""

import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from backscroll import __version__
from backscroll.cli.app import _SECTIONS, app
from backscroll.cli.messages import command_hint, printable_message, program
from tests.cli.run_command import backscroll


def install(folder: Path) -> Path:
    path = folder / "bin" / "backscroll"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("started_as", ["backscroll", "-c", "/lib/python/pytest/__main__.py"])
def test_the_program_is_named_by_its_name_if_no_path_is_known(
    started_as: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [started_as])
    assert program() == "backscroll"


def test_hints_of_the_module_name_the_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "backscroll", "list", "--nope"]
    environment = {"HOME": str(tmp_path), "PATH": ""}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert f"Run '{Path(sys.executable).name} -m backscroll list --help' for usage." in result.stderr


def test_the_program_is_named_by_its_name_if_it_is_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = install(tmp_path)
    monkeypatch.setenv("PATH", str(path.parent))
    monkeypatch.setattr(sys, "argv", [str(path)])
    assert program() == "backscroll"


def test_in_a_checkout_hints_contain_the_path_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = install(tmp_path / ".venv")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    for started_as in (".venv/bin/backscroll", str(path)):
        monkeypatch.setattr(sys, "argv", [started_as])
        assert command_hint("sync") == ".venv/bin/backscroll sync"
        assert printable_message("Run 'backscroll list' first.") == "Run '.venv/bin/backscroll list' first."


def test_a_program_outside_the_current_folder_is_named_by_its_quoted_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = install(tmp_path / "two words")
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path / "other")
    monkeypatch.setattr(sys, "argv", [str(path)])
    assert command_hint("sync") == f"{shlex.quote(str(path))} sync"


@pytest.mark.parametrize(
    ("arguments", "command"),
    [(["docter"], ""), (["list", "--nope"], " list"), (["archive", "extract"], " archive extract")],
)
def test_a_usage_error_names_the_help_of_its_command(arguments: list[str], command: str) -> None:
    result = backscroll(*arguments)
    assert result.code == 2
    assert result.err.endswith(f"backscroll{command} --help' for usage.\n")


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        (["docter"], "Did you mean 'doctor'?"),
        (["ls"], "Did you mean 'list'?"),
        (["st"], "Did you mean 'star' or 'stats'?"),
        (["forget", "1"], "Did you mean 'archive forget'?"),
        (["archive", "extrct", "1"], "Did you mean 'extract'?"),
        (["mcp", "instal"], "Did you mean 'install'?"),
    ],
)
def test_an_unknown_command_gives_a_suggestion(arguments: list[str], question: str) -> None:
    result = backscroll(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[0].endswith(f"'. {question}")


def test_an_unknown_command_without_a_similar_name_gives_no_suggestion() -> None:
    assert backscroll("qqq").err.startswith("No such command 'qqq'.\n")


@pytest.mark.parametrize("names", [(), ("list",), ("archive",), ("archive", "forget")])
def test_help_shows_the_help_of_a_command(names: tuple[str, ...]) -> None:
    result = backscroll("help", *names)
    assert (result.code, result.out) == (0, backscroll(*names, "--help").out)


def test_help_of_an_unknown_command_is_a_usage_error() -> None:
    result = backscroll("help", "archive", "forgt")
    assert (result.code, result.out) == (2, "")
    assert "Did you mean 'forget'?" in result.err
    assert backscroll("help", "list", "more").err.startswith("'backscroll list' has no subcommands.")


@pytest.mark.parametrize(
    ("name", "help_line"),
    [(name, line) for section in _SECTIONS.values() for name, (_, line) in section.items()],
)
def test_the_list_of_commands_has_the_first_line_of_each_help(name: str, help_line: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    assert (command.help or "").partition("\n")[0] == help_line


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "backscroll", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"backscroll {__version__}\n"
