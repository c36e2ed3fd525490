"""Folders, named pipes and broken links where a session file is expected."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Shell, backscroll

KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "folder": (Path.mkdir, "is a folder, not a file"),
    "pipe": (os.mkfifo, "is a named pipe, not a file"),
    "broken link": (
        lambda path: path.symlink_to("/does/not/exist"),
        "is a link to a file that does not exist",
    ),
    "link to itself": (lambda path: path.symlink_to(path.name), "is a link to itself"),
    "link to a folder": (lambda path: path.symlink_to("/"), "is a link to a folder, not to a file"),
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    Transcript(seed=1).user("a question").assistant("an answer").write(shell.root)
    return shell


def project(shell: Shell) -> Path:
    (folder,) = (shell.root / "projects").iterdir()
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_doctor_and_sync_name_what_is_not_a_file(shell: Shell, kind: str) -> None:
    create, reason = KINDS[kind]
    path = project(shell) / "0f3c9a12-0000-4000-8000-000000000001.jsonl"
    create(path)
    synced = shell.run("sync")
    assert synced.code == 3
    assert synced.out.startswith(f"Synced: 1 new.\nCannot read {path}: it {reason}.\n")
    checked = shell.run("doctor")
    assert checked.code == 3
    assert f"1 problem:\n  {path}, file: {reason}\n" in checked.out
    assert "Replace or remove what is not a file, then run " in checked.out
    assert "--shape" not in checked.out  # a bug report does not help
    (problem,) = json.loads(shell.run("doctor", "--json").out)["problems"]
    assert (problem["path"], problem["code"]) == (str(path), "not-a-file")


def test_sync_names_the_first_of_several_and_counts_all(shell: Shell) -> None:
    for number in range(1, 4):
        os.mkfifo(project(shell) / f"0f3c9a12-0000-4000-8000-00000000000{number}.jsonl")
    first = project(shell) / "0f3c9a12-0000-4000-8000-000000000001.jsonl"
    document = json.loads(shell.run("sync", "--json").out)
    assert document["irregular"][0] == str(first)
    assert (document["new"], document["problems"], len(document["irregular"])) == (1, 3, 3)
    assert shell.run("sync").out.startswith("Up to date.\n")


def test_a_history_of_nothing_but_a_pipe_is_not_up_to_date(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    path = shell.root / "projects" / "-home-dev" / "0f3c9a12-0000-4000-8000-000000000001.jsonl"
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    result = shell.run("sync")
    assert result.code == 3
    assert f"Cannot read {path}: it is a named pipe" in result.out


def test_a_link_to_a_transcript_is_read(shell: Shell, tmp_path: Path) -> None:
    other = Transcript(seed=2).user("another").write(tmp_path / "elsewhere")
    (project(shell) / other.name).symlink_to(other)
    result = shell.run("doctor")
    assert result.code == 0
    assert "sessions   2" in result.out


def test_databases_and_transcripts_of_cursor_are_checked_too(tmp_path: Path) -> None:
    cursor_cli.Home(tmp_path / "cli").chat([cursor.user("a question")], cwd="/home/dev")
    (workspace,) = (tmp_path / "cli" / "chats").iterdir()
    (workspace / "a-session" / "store.db").mkdir(parents=True)
    transcripts = tmp_path / "cli" / "projects" / "home-dev" / "agent-transcripts"
    transcripts.mkdir(parents=True)
    os.mkfifo(transcripts / "0f3c9a12-0000-4000-8000-000000000001.jsonl")
    storage = tmp_path / "ide" / "User" / "globalStorage"
    storage.mkdir(parents=True)
    os.mkfifo(storage / "state.vscdb")
    result = backscroll(
        "--root", f"cursor-cli={tmp_path / 'cli'}", "--root", f"cursor={tmp_path / 'ide'}", "doctor", "--json"
    )
    problems = {(Path(one["path"]).name, one["code"]) for one in json.loads(result.out)["problems"]}
    assert problems == {
        ("store.db", "not-a-file"),
        ("0f3c9a12-0000-4000-8000-000000000001.jsonl", "not-a-file"),
        ("state.vscdb", "not-a-file"),
    }
