"""``archive forget``, ``rebuild``, ``compact`` and the settings file."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import COMMAND, Shell
from tests.forked_process import ForkedProcess

ONE = "10000000-0000-4000-8000-000000000000"
TWO = "20000000-0000-4000-8000-000000000000"


class ArchiveShell(Shell):
    """Runs the command and answers its confirmation."""

    def ids(self) -> set[str]:
        return {session["id"] for session in self.json("list")["data"]}

    def answer(self, reply: str, *arguments: str) -> tuple[int, str]:
        """Run on a terminal, type a reply and return the exit code and the question."""
        controller, terminal = pty.openpty()
        process = ForkedProcess(
            [COMMAND, *self.options, *arguments],
            stdin=terminal,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        os.close(terminal)
        os.write(controller, reply.encode())
        _, question = process.communicate(timeout=60)
        os.close(controller)
        return process.wait(), question


@pytest.fixture
def shell(tmp_path: Path) -> ArchiveShell:
    shell = ArchiveShell(tmp_path)
    for index, id_ in enumerate((ONE, TWO)):
        session = Transcript(id_, seed=index, cwd=f"/home/zoe/p{index}")
        session.user(f"question {index}").assistant("yes").write(shell.root)
    shell.sync()
    return shell


def test_without_a_terminal_forget_requires_yes(shell: ArchiveShell) -> None:
    result = shell.run("archive", "forget", ONE)
    assert (result.code, result.out) == (2, "")
    assert "--yes" in result.err
    assert shell.ids() == {ONE, TWO}


def test_forget_erases_a_session_but_not_the_tools_files(shell: ArchiveShell) -> None:
    result = shell.run("archive", "forget", ONE[:6], "--yes")
    assert result.code == 0, result.err
    assert "Files of claude-code. Delete them:" in result.out
    assert shell.ids() == {TWO}
    assert shell.run("show", ONE).code == 1
    assert next(shell.root.rglob(f"{ONE}.jsonl")).exists()


def test_forget_json_lists_the_erased_content(shell: ArchiveShell) -> None:
    document = shell.json("archive", "forget", ONE, "--yes")
    assert document["ref"] == f"claude-code:{ONE}"
    assert (document["session_id"], document["messages"], document["is_erased"]) == (ONE, 2, True)


def test_forget_asks_for_confirmation_on_a_terminal(shell: ArchiveShell) -> None:
    assert shell.answer("n\n", "archive", "forget", ONE)[0] == 1
    assert shell.ids() == {ONE, TWO}
    assert shell.answer("y\n", "archive", "forget", ONE)[0] == 0
    assert shell.ids() == {TWO}


def test_forget_shows_title_and_workspace_of_an_index_before_it_asks(shell: ArchiveShell) -> None:
    (listed,) = shell.json("list", "--workspace", "p0")["data"]
    code, question = shell.answer("y\n", "archive", "forget", str(listed["index"]))
    assert (code, shell.ids()) == (0, {TWO})
    assert "question 0" in question
    assert "/home/zoe/p0" in question


def test_forget_without_a_question_requires_an_id(shell: ArchiveShell) -> None:
    result = shell.run("archive", "forget", "1", "--yes")
    assert (result.code, result.out, shell.ids()) == (2, "", {ONE, TWO})
    first = shell.json("list")["data"][0]
    assert first["ref"] in result.err
    assert f'"{first["title"]}" in {first["workspace_name"]}' in result.err


def test_an_archive_is_rebuilt_and_compacted(shell: ArchiveShell) -> None:
    before = shell.json("list")
    assert shell.json("archive", "rebuild") == {
        "units": 2,
        "kept": 0,
        "sessions": 2,
        "is_complete": True,
    }
    compaction = shell.json("archive", "compact")
    assert compaction["saved"] == compaction["before"] - compaction["after"]
    assert shell.json("list") == before
    assert shell.json("search", "question")["pagination"]["total"] == 2
    assert "Parsed 2 originals again" in shell.run("archive", "rebuild").out
    assert "bytes saved" in shell.run("archive", "compact").out


def test_excluded_workspaces_are_skipped_and_unknown_settings_are_reported(shell: ArchiveShell) -> None:
    (shell.home / "config.toml").write_text('exclude = ["*/p9"]\ncolour = "red"\n')
    Transcript(cwd="/home/zoe/p9", seed=9).user("question 9").write(shell.root)
    result = shell.run("list", "--json")
    assert {session["id"] for session in json.loads(result.out)["data"]} == {ONE, TWO}
    assert result.err.count("colour") == 1


def test_invalid_settings_are_a_usage_error(shell: ArchiveShell) -> None:
    (shell.home / "config.toml").write_text("exclude = [")
    result = shell.run("list")
    assert result.code == 2
    assert "config.toml" in result.err
