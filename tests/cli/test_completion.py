"""Shell completion."""

import subprocess
import sys
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Result, backscroll

FERRY = "5e551011-0000-4000-8000-00000000000a"
QUAY = "5e551011-0000-4000-8000-00000000000b"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for id_, name in ((FERRY, "ferry"), (QUAY, "quay")):
        session = Transcript(id_, seed=len(name), cwd=f"/home/zoe/{name}")
        session.user(f"About the {name}\x1b[31m").assistant("Yes.").write(folder / "claude")
    options = ("--home", folder / "home", "--root", f"claude-code={folder / 'claude'}")
    assert backscroll(*options, "sync").code == 0
    return folder / "home"


def complete(shell: str, line: str, **environ: str) -> Result:
    typed = line.split(" ")
    variables = {"_BACKSCROLL_COMPLETE": f"{shell}_complete", "COMP_WORDS": line}
    return backscroll(**variables, COMP_CWORD=str(len(typed) - 1), **environ)


def completions(home: Path, line: str) -> list[str]:
    result = complete("bash", line, BACKSCROLL_HOME=str(home))
    assert (result.code, result.err) == (0, "")
    return [value.partition(",")[2] for value in result.out.split()]


def test_a_ref_is_completed_from_the_archive(home: Path) -> None:
    assert set(completions(home, "backscroll show 5e55")) == {FERRY, QUAY}
    assert completions(home, f"backscroll show {QUAY}") == [QUAY]
    assert completions(home, "backscroll show zz") == []
    assert completions(home, f"backscroll show cursor:{QUAY}") == []
    assert completions(home, f"backscroll show claude-code:{QUAY}") == [f"claude-code:{QUAY}"]


def test_help_completes_commands(home: Path) -> None:
    assert completions(home, "backscroll help sta") == ["star", "stats"]
    assert completions(home, "backscroll help archive for") == ["forget"]
    assert completions(home, "backscroll help list ") == []


def test_a_completed_ref_has_a_sanitized_title(home: Path) -> None:
    result = complete("zsh", f"backscroll show {FERRY}", BACKSCROLL_HOME=str(home))
    assert "About the ferry" in result.out
    assert "\x1b" not in result.out


def test_completion_uses_the_home_option_of_the_command_line(home: Path) -> None:
    assert completions(home.parent, f"backscroll --home {home} show {QUAY[:-1]}") != []


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("backscroll list --workspace ", {"ferry", "quay"}),
        ("backscroll list --workspace Q", {"quay"}),
        ("backscroll search --branch m", {"main"}),
        ("backscroll list --model claude-o", {"claude-opus-5"}),
        ("backscroll list --source cu", {"cursor", "cursor-cli"}),
        ("backscroll export --format j", {"json", "jsonl"}),
        ("backscroll show --only user,t", {"user,thinking", "user,tool"}),
        ("backscroll show --color a", {"auto", "always"}),
        ("backscroll sho", {"show"}),
        ("backscroll completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_names_are_completed(home: Path, line: str, values: set[str]) -> None:
    assert set(completions(home, line)) == values


@pytest.mark.parametrize("command", ["export", "tail", "archive extract", "archive forget"])
def test_every_command_that_takes_a_session_completes_it(home: Path, command: str) -> None:
    assert completions(home, f"backscroll {command} {QUAY[:-1]}") != []


def test_a_session_already_on_the_command_line_is_not_offered_again(home: Path) -> None:
    assert completions(home, f"backscroll export {QUAY} 5e55") == [FERRY]


def test_without_an_archive_nothing_is_offered_and_no_archive_is_created(tmp_path: Path) -> None:
    assert completions(tmp_path / "none", "backscroll show ") == []
    assert not (tmp_path / "none").exists()


def test_an_unreadable_archive_causes_no_completion_error(tmp_path: Path) -> None:
    (tmp_path / "archive.db").write_bytes(b"nonsense" * 1000)
    assert completions(tmp_path, "backscroll show ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_only_the_script_and_its_help_says_how_to_install_it(shell: str) -> None:
    result = backscroll("completion", shell)
    assert result.code == 0
    assert f"_BACKSCROLL_COMPLETE={shell}_complete" in result.out
    assert result.err == ""
    assert "To install" not in result.out
    assert f"backscroll completion {shell} >" in backscroll("completion", "--help").out


def test_bash_can_load_the_script(tmp_path: Path) -> None:
    script = tmp_path / "backscroll.bash"
    script.write_text(backscroll("completion", "bash").out, encoding="utf-8")
    try:
        completed = subprocess.run(
            ["bash", "-c", f"source {script}; complete -p backscroll"],
            capture_output=True,
            text=True,
            check=True,
        )
    except FileNotFoundError:
        pytest.skip(f"no bash on {sys.platform}")
    assert "_backscroll_completion backscroll" in completed.stdout
