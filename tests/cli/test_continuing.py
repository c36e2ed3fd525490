"""``resume`` and ``open``: what is run, where, and what is said when it cannot be."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.running import Ran, backscroll

ONE = "10000000-0000-4000-8000-000000000000"
RECORDER = """\
#!{python}
import json, os, sys
told = {{"argv": sys.argv[1:], "cwd": os.getcwd(), "home": os.environ.get("CLAUDE_CONFIG_DIR")}}
open({record!r}, "w").write(json.dumps(told))
"""


class Desk:
    """A machine with a workspace, a history and programs that write down how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claude = folder / ".claude"
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.workspace = folder / "ferry"
        self.workspace.mkdir()
        self.record = folder / "called.json"

    def install(self, name: str) -> None:
        program = self.programs / name
        program.write_text(RECORDER.format(python=sys.executable, record=str(self.record)), encoding="utf-8")
        program.chmod(0o755)

    def run(self, *arguments: str, **environ: str) -> Ran:
        named = {"HOME": str(self.folder), "PATH": str(self.programs), "VISUAL": "", "EDITOR": ""}
        return backscroll("--home", self.folder / "home", *arguments, **(named | environ))

    def called(self) -> Any:
        return json.loads(self.record.read_text(encoding="utf-8"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def talk(desk: Desk, id_: str = ONE) -> Transcript:
    return Transcript(id_, cwd=str(desk.workspace)).user("When does the ferry leave?").assistant("At noon.")


def test_claude_code_is_run_with_the_id_in_the_folder_of_the_session(desk: Desk) -> None:
    talk(desk).write(desk.claude)
    desk.install("claude")
    assert desk.run("resume", "1").code == 0
    assert desk.called() == {"argv": ["--resume", ONE], "cwd": str(desk.workspace), "home": None}


def test_a_history_elsewhere_is_named_to_claude_code(desk: Desk) -> None:
    talk(desk).write(desk.folder / ".claude-work")
    desk.install("claude")
    assert desk.run("resume", ONE).code == 0
    assert desk.called()["home"] == str(desk.folder / ".claude-work")


def test_a_session_that_changed_folders_is_continued_where_its_project_is(desk: Desk) -> None:
    below = desk.workspace / "docs"
    below.mkdir()
    said = Transcript(ONE, cwd=str(desk.workspace)).user("one")
    said.cwd = str(below)
    said.user("two").user("three").write(desk.claude)
    desk.install("claude")
    desk.run("resume", ONE)
    assert desk.called()["cwd"] == str(desk.workspace)


def test_what_would_be_run_can_be_printed_for_a_shell(desk: Desk) -> None:
    desk.workspace = desk.folder / "two words"
    desk.workspace.mkdir()
    talk(desk).write(desk.claude)
    desk.install("claude")
    printed = desk.run("resume", ONE, "--print")
    assert (printed.out, printed.err) == (f"cd '{desk.workspace}' && claude --resume {ONE}\n", "")
    told = json.loads(desk.run("resume", ONE, "--json").out)
    assert told["command"]["argv"] == ["claude", "--resume", ONE]
    assert (told["command"]["folder"], told["obstacle"]) == (str(desk.workspace), None)
    assert not desk.record.exists()


def test_a_program_that_is_not_there_is_said_and_the_command_printed(desk: Desk) -> None:
    talk(desk).write(desk.claude)
    ran = desk.run("resume", ONE)
    assert (ran.code, ran.out) == (1, f"cd {desk.workspace} && claude --resume {ONE}\n")
    assert "claude is not installed here" in ran.err


def test_a_folder_that_is_gone_is_said(desk: Desk) -> None:
    talk(desk).write(desk.claude)
    desk.install("claude")
    desk.workspace.rmdir()
    ran = desk.run("resume", ONE)
    assert ran.code == 1
    assert f"the folder {desk.workspace} is not there" in ran.err
    assert not desk.record.exists()


def test_a_subagent_is_continued_with_its_session(desk: Desk) -> None:
    said = talk(desk)
    said.delegate("Look around", "There are two ferries.")
    said.write(desk.claude)
    desk.install("claude")
    (agent,) = [
        one for one in json.loads(desk.run("list", "--subagents", "--json").out)["data"] if one["parent_ref"]
    ]
    desk.run("resume", agent["ref"])
    assert desk.called()["argv"] == ["--resume", ONE]


# --- deleted by the tool ------------------------------------------------------------------------------------


def register(desk: Desk) -> tuple[Path, dict[str, Any]]:
    """Let this process be the one that holds the session, as far as the tool's registry tells."""
    started = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    registry = desk.claude / "sessions" / f"{os.getpid()}.json"
    registry.parent.mkdir(parents=True)
    running = {"pid": os.getpid(), "procStart": started, "sessionId": ONE}
    registry.write_text(json.dumps(running), encoding="utf-8")
    return registry, running


def deleted(desk: Desk) -> Path:
    """The file of a session that was read and then deleted."""
    path = talk(desk).write(desk.claude)
    desk.run("sync")
    desk.folder.joinpath("kept").write_bytes(path.read_bytes())
    path.unlink()
    return path


def test_a_deleted_session_is_said_to_be_and_nothing_is_written_unasked(desk: Desk) -> None:
    path = deleted(desk)
    desk.install("claude")
    for line in (["resume", ONE], ["resume", ONE, "--restore", "--print"], ["resume", ONE, "--json"]):
        desk.run(*line)
        assert not path.exists()
    ran = desk.run("resume", ONE)
    assert ran.code == 1
    assert "--restore puts its file back" in ran.err
    assert str(path) in ran.err
    assert not desk.record.exists()


def test_a_deleted_session_is_put_back_byte_for_byte_and_continued(desk: Desk) -> None:
    path = deleted(desk)
    desk.install("claude")
    ran = desk.run("resume", ONE, "--restore")
    assert ran.code == 0, ran.err
    assert path.read_bytes() == desk.folder.joinpath("kept").read_bytes()
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert desk.called()["argv"] == ["--resume", ONE]
    assert not json.loads(desk.run("list", "--json").out)["data"][0]["is_gone"]


def test_the_files_of_subagents_are_put_back_with_the_session(desk: Desk) -> None:
    talk(desk).delegate("Look around", "There are two ferries.").write(desk.claude)
    before = {path: path.read_bytes() for path in desk.claude.rglob("*.jsonl")}
    desk.run("sync")
    shutil.rmtree(desk.claude / "projects")
    assert "puts its 2 files back" in desk.run("resume", ONE).err
    desk.install("claude")
    desk.run("resume", ONE, "--restore")
    assert {path: path.read_bytes() for path in desk.claude.rglob("*.jsonl")} == before


def test_a_file_that_is_there_again_is_never_replaced(desk: Desk) -> None:
    path = deleted(desk)
    desk.run("sync")
    path.write_text("something else\n", encoding="utf-8")
    desk.run("resume", ONE, "--restore", "--no-sync")
    assert path.read_text(encoding="utf-8") == "something else\n"


def test_a_session_that_is_open_already_is_not_opened_twice(desk: Desk) -> None:
    talk(desk).write(desk.claude)
    desk.install("claude")
    register(desk)
    ran = desk.run("resume", ONE)
    assert ran.code == 1
    assert f"process {os.getpid()} has claude-code:{ONE} open already" in ran.err
    assert not desk.record.exists()


def test_nothing_is_put_back_while_the_tool_has_the_session_open(desk: Desk) -> None:
    path = deleted(desk)
    registry, running = register(desk)
    ran = desk.run("resume", ONE, "--restore")
    assert (ran.code, path.exists()) == (1, False)
    assert f"process {os.getpid()} has the session open" in ran.err
    registry.write_text(
        json.dumps(running | {"procStart": "1"}), encoding="utf-8"
    )  # somebody else's number now
    desk.run("resume", ONE, "--restore")
    assert path.exists()


def test_of_a_database_it_is_said_what_can_be_done_instead(desk: Desk) -> None:
    ide = cursor.Home(desk.folder / ".config" / "Cursor")
    ide.composer([cursor.user("one"), cursor.assistant("yes")], workspace=cursor.SHOP, name="kept", id=ONE)
    ide.write()
    desk.run("sync")
    shutil.rmtree(desk.folder / ".config" / "Cursor" / "User")
    ran = desk.run("resume", ONE)
    assert ran.code == 1
    assert "archive extract" in ran.err
    assert "handoff" in ran.err


# --- the other tools ----------------------------------------------------------------------------------------


def test_the_editor_is_opened_on_the_workspace(desk: Desk) -> None:
    ide = cursor.Home(desk.folder / ".config" / "Cursor")
    ide.composer([cursor.user("one")], workspace=cursor.local(str(desk.workspace)), name="Ferry times")
    ide.write()
    desk.install("cursor")
    ran = desk.run("resume", "1")
    assert (desk.called()["argv"], desk.called()["cwd"]) == ([str(desk.workspace)], str(desk.workspace))
    assert "“Ferry times”" in ran.err


def test_the_agent_is_run_in_the_folder_that_its_store_is_named_after(desk: Desk) -> None:
    home = cursor_cli.Home(desk.folder / ".cursor")
    home.chat([cursor.user("one"), cursor.assistant("yes")], cwd=str(desk.workspace), id=ONE)
    desk.install("cursor-agent")
    desk.run("resume", ONE)
    assert (desk.called()["argv"], desk.called()["cwd"]) == (["--resume", ONE], str(desk.workspace))


# --- open ---------------------------------------------------------------------------------------------------


def edited(desk: Desk) -> Path:
    """A file that the session's third message changed, and which has moved on since."""
    file = desk.workspace / "ferry.py"
    said = talk(desk)
    said.run(tool_calls.edit(str(file), "noon = 12", "noon = 13", original="noon = 12\n"))
    said.write(desk.claude)
    file.write_text("# one\n# two\n# three\nnoon = 13\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("editor", "told"),
    [
        ("vim", ["+4", "{}"]),
        ("nano -w", ["-w", "+4", "{}"]),
        ("code --wait", ["--wait", "-g", "{}:4"]),
        ("subl", ["{}:4"]),
        ("something", ["{}"]),
    ],
)
def test_a_file_is_opened_where_the_message_changed_it(desk: Desk, editor: str, told: list[str]) -> None:
    file = edited(desk)
    desk.install(editor.split()[0])
    ran = desk.run("open", ONE, "2", EDITOR=editor)
    assert ran.code == 0, ran.err
    assert desk.called()["argv"] == [word.format(file) for word in told]


def test_the_workspace_is_opened_without_a_position(desk: Desk) -> None:
    talk(desk).write(desk.claude)
    desk.install("code")
    desk.run("open", ONE)
    assert desk.called()["argv"] == [str(desk.workspace)]


def test_what_cannot_be_opened_is_said(desk: Desk) -> None:
    file = edited(desk)
    assert "is about no file" in desk.run("open", ONE, "0").err
    assert "has no message 99" in desk.run("open", ONE, "99").err
    assert "name your editor in EDITOR" in desk.run("open", ONE, "2").err
    file.unlink()
    ran = desk.run("open", ONE, "2", EDITOR="vim")
    assert (ran.code, ran.err.strip()) == (1, f"{file} is not there; it was moved or deleted")
