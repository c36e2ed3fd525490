"""``export`` and ``secrets`` as a person sees them."""

import json
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.running import Shell
from tests.render.tokens import made

TOKEN = "ghp" + "_" + made(36)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    for number in range(2):
        session = Transcript(
            f"{number}0000000-0000-4000-8000-000000000000", seed=number, cwd="/home/zoe/ferry"
        )
        session.user(f"question {number}").run(tool_calls.bash(f"curl -H 'X: {TOKEN}'", "ok")).assistant(
            "Done."
        )
        session.write(tmp_path / "claude")
    return Shell(tmp_path)


def test_one_session_goes_to_standard_output_as_markdown(shell: Shell) -> None:
    ran = shell.run("export", "10000000")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("# question 1\n")


def test_the_name_of_the_file_says_the_format(shell: Shell) -> None:
    ran = shell.run("export", "1", "-o", str(shell.folder / "a.html"))
    assert (ran.code, ran.out) == (0, "")
    assert (shell.folder / "a.html").read_text("utf-8").startswith("<!doctype html>")
    again = shell.run("export", "1", "-o", str(shell.folder / "a.html"))
    assert again.code == 1
    assert "--force" in again.err


@pytest.mark.parametrize("name", ["A.HTM", "a.markdown", "a.txt", "notes"])
def test_usual_endings_are_understood(shell: Shell, name: str) -> None:
    ran = shell.run("export", "1", "-o", str(shell.folder / name))
    assert ran.code == 0, ran.err
    assert (shell.folder / name).read_text("utf-8").startswith("<!doctype") == (name == "A.HTM")


def test_an_ending_that_names_no_format_is_refused(shell: Shell) -> None:
    ran = shell.run("export", "1", "-o", str(shell.folder / "a.foo"))
    assert ran.code == 2
    assert ".html" in ran.err and "--format" in ran.err
    assert not (shell.folder / "a.foo").exists()
    assert shell.run("export", "1", "--format", "txt", "-o", str(shell.folder / "a.foo")).code == 0


def test_an_interrupted_export_goes_on_and_replaces_nothing(shell: Shell) -> None:
    folder = shell.folder / "out"
    arguments = ["export", "--all", "--format", "html", "-o", str(folder)]
    assert shell.run(*arguments).code == 0
    first, second, _ = sorted(folder.iterdir())
    whole = second.read_bytes()
    second.unlink()
    first.write_text("mine", "utf-8")
    refused = shell.run(*arguments)
    assert refused.code == 1
    assert "--missing" in refused.err
    ran = shell.run(*arguments, "--missing")
    assert ran.code == 0, ran.err
    assert "Wrote 1 session" in ran.err and "1 was there already" in ran.err
    assert (first.read_text("utf-8"), second.read_bytes()) == ("mine", whole)


def test_several_go_into_a_folder(shell: Shell) -> None:
    ran = shell.run("export", "--all", "--format", "html", "-o", str(shell.folder / "out"))
    assert ran.code == 0, ran.err
    assert "Wrote 2 sessions" in ran.err
    assert len(list((shell.folder / "out").iterdir())) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["export"],
        ["export", "1", "--all"],
        ["export", "--all"],
        ["export", "1", "2"],
        ["export", "--all", "-o", "out.html"],
        ["export", "--all", "-o", "out", "--force", "--missing"],
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(shell: Shell, arguments: list[str]) -> None:
    assert shell.run(*arguments).code == 2


@pytest.mark.parametrize("redact", [["--redact", "1"], ["1", "--redact"], ["--redact=secrets", "1"]])
@pytest.mark.parametrize("format_", ["md", "html", "json", "jsonl", "txt"])
def test_a_secret_is_replaced_and_its_place_is_said(shell: Shell, format_: str, redact: list[str]) -> None:
    ran = shell.run("export", "--format", format_, *redact)
    assert ran.code == 0, ran.err
    assert TOKEN not in ran.out + ran.err
    assert "[redacted: GitHub token #1]" in ran.out
    assert "GitHub token #1: claude-code:10000000 (1)" in ran.err
    assert "/home/zoe" in ran.out


def test_home_folders_are_replaced_on_request(shell: Shell) -> None:
    ran = shell.run("export", "1", "--redact=paths,emails")
    assert "/home/zoe" not in ran.out
    assert TOKEN not in ran.out
    assert "[redacted: home folder #1]/ferry" in ran.out
    wrong = shell.run("export", "1", "--redact=paths,phones")
    assert (wrong.code, "phones" in wrong.err) == (2, True)


def test_secrets_are_listed_and_not_shown(shell: Shell) -> None:
    ran = shell.run("secrets")
    assert ran.code == 0, ran.err
    assert "GitHub token #1" in ran.out
    assert TOKEN not in ran.out
    told = json.loads(shell.run("secrets", "--json").out)
    (one,) = told["data"]
    assert (one["kind"], one["count"], len(one["places"])) == ("GitHub token", 2, 2)
    assert json.loads(shell.run("secrets", "--workspace", "elsewhere", "--json").out) == {
        "data": [],
        "total": 0,
    }
