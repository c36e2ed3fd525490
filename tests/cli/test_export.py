"""``export`` and ``secrets``."""

import json
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.run_command import Shell
from tests.render.tokens import random_text

TOKEN = "ghp" + "_" + random_text(36)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    for seed in range(2):
        session = Transcript(f"{seed}0000000-0000-4000-8000-000000000000", seed=seed, cwd="/home/zoe/ferry")
        session.user(f"question {seed}").run(tool_calls.bash(f"curl -H 'X: {TOKEN}'", "ok")).assistant(
            "Done."
        )
        session.write(tmp_path / "claude")
    return Shell(tmp_path)


def test_one_session_is_written_to_standard_output_as_markdown(shell: Shell) -> None:
    result = shell.run("export", "10000000")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("# question 1\n")


def test_a_dash_is_standard_output(shell: Shell) -> None:
    result = shell.run("export", "10000000", "-o", "-")
    assert (result.code, result.out) == (0, shell.run("export", "10000000").out)
    assert shell.run("export", "--all", "-o", "-").code == 2


@pytest.mark.parametrize("arguments", [("1", "-o", "missing/a.md"), ("--all", "-o", "missing/folder")])
def test_the_folder_that_contains_the_output_must_exist(shell: Shell, arguments: tuple[str, ...]) -> None:
    *refs, path = arguments
    result = shell.run("export", *refs, str(shell.folder / path))
    assert result.code == 1
    assert f"The folder {shell.folder / 'missing'} does not exist." in result.err
    assert not (shell.folder / "missing").exists()


@pytest.mark.parametrize("ref", ["1", "2", "10000000"])
def test_json_is_the_same_document_as_that_of_show(shell: Shell, ref: str) -> None:
    exported = shell.run("export", ref, "--format", "json")
    assert (exported.code, exported.out) == (0, shell.run("show", ref, "--json").out)


def test_exported_pages_link_to_their_index(shell: Shell) -> None:
    folder = shell.folder / "out"
    assert shell.run("export", "--all", "--format", "html", "-o", str(folder)).code == 0
    pages = [page for page in folder.iterdir() if page.name != "index.html"]
    assert len(pages) == 2
    for page in pages:
        assert '<a href="index.html">All sessions</a>' in page.read_text("utf-8")
        assert page.name in (folder / "index.html").read_text("utf-8")
    assert "index.html" not in shell.run("export", "1", "--format", "html").out


def test_the_suffix_of_the_file_selects_the_format(shell: Shell) -> None:
    result = shell.run("export", "1", "-o", str(shell.folder / "a.html"))
    assert (result.code, result.out) == (0, "")
    assert (shell.folder / "a.html").read_text("utf-8").startswith("<!doctype html>")
    again = shell.run("export", "1", "-o", str(shell.folder / "a.html"))
    assert again.code == 1
    assert "--force" in again.err


@pytest.mark.parametrize("name", ["A.HTM", "a.markdown", "a.txt", "notes"])
def test_common_suffixes_are_recognized(shell: Shell, name: str) -> None:
    result = shell.run("export", "1", "-o", str(shell.folder / name))
    assert result.code == 0, result.err
    assert (shell.folder / name).read_text("utf-8").startswith("<!doctype") == (name == "A.HTM")


def test_an_unknown_suffix_is_a_usage_error(shell: Shell) -> None:
    result = shell.run("export", "1", "-o", str(shell.folder / "a.foo"))
    assert result.code == 2
    assert ".html" in result.err and "--format" in result.err
    assert not (shell.folder / "a.foo").exists()
    assert shell.run("export", "1", "--format", "txt", "-o", str(shell.folder / "a.foo")).code == 0


def test_missing_continues_an_interrupted_export_and_overwrites_nothing(shell: Shell) -> None:
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
    result = shell.run(*arguments, "--missing")
    assert result.code == 0, result.err
    assert "Wrote 1 session" in result.err and "1 already there" in result.err
    assert (first.read_text("utf-8"), second.read_bytes()) == ("mine", whole)


def test_several_sessions_are_written_to_a_folder(shell: Shell) -> None:
    result = shell.run("export", "--all", "--format", "html", "-o", str(shell.folder / "out"))
    assert result.code == 0, result.err
    assert "Wrote 2 sessions" in result.err
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
def test_contradictory_arguments_are_a_usage_error(shell: Shell, arguments: list[str]) -> None:
    assert shell.run(*arguments).code == 2


@pytest.mark.parametrize("redact", [["--redact", "1"], ["1", "--redact"], ["--redact=secrets", "1"]])
@pytest.mark.parametrize("format_", ["md", "html", "json", "jsonl", "txt"])
def test_a_secret_is_replaced_and_its_location_is_reported(
    shell: Shell, format_: str, redact: list[str]
) -> None:
    result = shell.run("export", "--format", format_, *redact)
    assert result.code == 0, result.err
    assert TOKEN not in result.out + result.err
    assert "[redacted: GitHub token #1]" in result.out
    assert "GitHub token #1: claude-code:10000000 (1)" in result.err
    assert "/home/zoe" in result.out


def test_home_folders_are_replaced_if_requested(shell: Shell) -> None:
    result = shell.run("export", "1", "--redact=paths,emails")
    assert "/home/zoe" not in result.out
    assert TOKEN not in result.out
    assert "[redacted: home folder #1]/ferry" in result.out
    wrong = shell.run("export", "1", "--redact=paths,phones")
    assert (wrong.code, "phones" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    "arguments", [["1", "--redact=bogus"], ["--redact=bogus", "1"], ["--all", "--redact", "bogus"]]
)
def test_an_unknown_category_is_a_usage_error(shell: Shell, arguments: list[str]) -> None:
    result = shell.run("export", *arguments)
    assert result.code == 2
    assert "Cannot redact 'bogus'. Use secrets, emails, paths." in result.err


def test_secrets_are_listed_but_not_printed(shell: Shell) -> None:
    result = shell.run("secrets")
    assert result.code == 0, result.err
    assert "GitHub token #1" in result.out
    assert TOKEN not in result.out
    document = json.loads(shell.run("secrets", "--json").out)
    (secret,) = document["data"]
    assert (secret["kind"], secret["count"], len(secret["places"])) == ("GitHub token", 2, 2)
    assert json.loads(shell.run("secrets", "--workspace", "elsewhere", "--json").out) == {
        "data": [],
        "total": 0,
        "is_complete": True,
    }


def test_the_places_of_a_secret_that_are_not_listed_are_counted(shell: Shell, tmp_path: Path) -> None:
    session = Transcript("50000000-0000-4000-8000-000000000000", seed=5, cwd="/home/zoe/ferry")
    for _ in range(3):
        session.user(f"use {TOKEN}").assistant("Done.")
    session.write(tmp_path / "claude")
    result = shell.run("secrets")
    assert result.out.count("    claude-code:") == 3
    assert "… and 3 more" in result.out
