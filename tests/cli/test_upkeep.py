"""``archive forget``, ``rebuild``, ``compact`` and the settings file, as people and programs see them."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript
from tests.cli.running import COMMAND, Shell

ONE = "10000000-0000-4000-8000-000000000000"
TWO = "20000000-0000-4000-8000-000000000000"


class Keeping(Shell):
    """The command, asked for what cannot be undone."""

    def ids(self) -> set[str]:
        return {one["id"] for one in self.json("list")["data"]}

    def asked(self, answer: str, *arguments: str) -> int:
        """Run on a terminal and type an answer."""
        ours, theirs = pty.openpty()
        running = subprocess.Popen(
            [COMMAND, *self.options, *arguments],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.write(ours, answer.encode())
        code = running.wait(timeout=60)
        os.close(ours)
        return code


@pytest.fixture
def shell(tmp_path: Path) -> Keeping:
    shell = Keeping(tmp_path)
    for number, id_ in enumerate((ONE, TWO)):
        Transcript(id_, seed=number, cwd=f"/home/zoe/p{number}").user(f"question {number}").assistant(
            "yes"
        ).write(shell.root)
    assert shell.run("sync").code == 0
    return shell


def test_without_a_terminal_nothing_is_forgotten_unless_it_is_said_twice(shell: Keeping) -> None:
    ran = shell.run("archive", "forget", ONE)
    assert (ran.code, ran.out) == (2, "")
    assert "--yes" in ran.err
    assert shell.ids() == {ONE, TWO}


def test_a_session_is_forgotten_and_people_are_told_what_was_not_touched(shell: Keeping) -> None:
    ran = shell.run("archive", "forget", ONE[:6], "--yes")
    assert ran.code == 0, ran.err
    assert "own files were not touched" in ran.out
    assert shell.ids() == {TWO}
    assert shell.run("show", ONE).code == 1
    assert next(shell.root.rglob(f"{ONE}.jsonl")).exists()


def test_a_program_is_told_what_was_forgotten(shell: Keeping) -> None:
    done = shell.json("archive", "forget", ONE, "--yes")
    assert done["ref"] == f"claude-code:{ONE}"
    assert (done["session_id"], done["messages"], done["is_erased"]) == (ONE, 2, True)


def test_on_a_terminal_the_person_is_asked(shell: Keeping) -> None:
    assert shell.asked("n\n", "archive", "forget", ONE) == 1
    assert shell.ids() == {ONE, TWO}
    assert shell.asked("y\n", "archive", "forget", ONE) == 0
    assert shell.ids() == {TWO}


def test_an_archive_is_rebuilt_and_compacted(shell: Keeping) -> None:
    before = shell.json("list")
    assert shell.json("archive", "rebuild") == {"units": 2, "kept": 0, "sessions": 2}
    done = shell.json("archive", "compact")
    assert done["saved"] == done["before"] - done["after"]
    assert shell.json("list") == before
    assert shell.json("search", "question")["pagination"]["total"] == 2
    assert "2 originals read again" in shell.run("archive", "rebuild").out
    assert "bytes saved" in shell.run("archive", "compact").out


def test_excluded_workspaces_are_passed_over_and_unknown_settings_are_named(shell: Keeping) -> None:
    (shell.home / "config.toml").write_text('exclude = ["*/p9"]\ncolour = "red"\n')
    Transcript(cwd="/home/zoe/p9", seed=9).user("question 9").write(shell.root)
    ran = shell.run("list", "--json")
    assert {one["id"] for one in json.loads(ran.out)["data"]} == {ONE, TWO}
    assert ran.err.count("colour") == 1


def test_settings_that_cannot_be_understood_are_wrong_usage(shell: Keeping) -> None:
    (shell.home / "config.toml").write_text("exclude = [")
    ran = shell.run("list")
    assert ran.code == 2
    assert "config.toml" in ran.err
