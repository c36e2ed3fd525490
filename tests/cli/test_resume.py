"""``resume`` and ``open``: the command that is run, its folder, and errors."""

import json
import os
import re
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backscroll.sources import session_files
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Prompt, Transcript, tool_calls
from backscroll.testing.claude_code.side_files import write_prompts
from tests.cli.run_command import Result, backscroll

ONE = "10000000-0000-4000-8000-000000000000"
RECORDER = """\
#!{python}
import json, os, sys
call = {{"argv": sys.argv[1:], "cwd": os.getcwd(), "home": os.environ.get("CLAUDE_CONFIG_DIR")}}
open({record!r}, "w").write(json.dumps(call))
"""


class Machine:
    """Machine with a workspace, a history and programs that record how they were called."""

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

    def run(self, *arguments: str, **environ: str) -> Result:
        named = {"HOME": str(self.folder), "PATH": str(self.programs), "VISUAL": "", "EDITOR": ""}
        return backscroll("--home", self.folder / "home", *arguments, **(named | environ))

    def called(self) -> Any:
        return json.loads(self.record.read_text(encoding="utf-8"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def transcript(machine: Machine, id_: str = ONE) -> Transcript:
    return (
        Transcript(id_, cwd=str(machine.workspace)).user("When does the ferry leave?").assistant("At noon.")
    )


def test_claude_code_is_run_with_the_id_in_the_folder_of_the_session(machine: Machine) -> None:
    transcript(machine).write(machine.claude)
    machine.install("claude")
    assert machine.run("resume", "1").code == 0
    assert machine.called() == {"argv": ["--resume", ONE], "cwd": str(machine.workspace), "home": None}


def test_a_history_in_another_folder_is_passed_to_claude_code(machine: Machine) -> None:
    transcript(machine).write(machine.folder / ".claude-work")
    machine.install("claude")
    assert machine.run("resume", ONE).code == 0
    assert machine.called()["home"] == str(machine.folder / ".claude-work")


def test_a_session_that_changed_folders_is_resumed_in_its_project_folder(machine: Machine) -> None:
    below = machine.workspace / "docs"
    below.mkdir()
    session = Transcript(ONE, cwd=str(machine.workspace)).user("one")
    session.cwd = str(below)
    session.user("two").user("three").write(machine.claude)
    machine.install("claude")
    machine.run("resume", ONE)
    assert machine.called()["cwd"] == str(machine.workspace)


def test_print_shows_the_command_for_a_shell(machine: Machine) -> None:
    machine.workspace = machine.folder / "two words"
    machine.workspace.mkdir()
    transcript(machine).write(machine.claude)
    machine.install("claude")
    printed = machine.run("resume", ONE, "--print")
    assert (printed.out, printed.err) == (f"cd '{machine.workspace}' && claude --resume {ONE}\n", "")
    document = json.loads(machine.run("resume", ONE, "--json").out)
    assert document["command"]["argv"] == ["claude", "--resume", ONE]
    assert (document["command"]["folder"], document["obstacle"]) == (str(machine.workspace), None)
    assert not machine.record.exists()


def test_if_the_program_is_missing_the_command_is_printed(machine: Machine) -> None:
    transcript(machine).write(machine.claude)
    result = machine.run("resume", ONE)
    assert (result.code, result.out) == (1, f"cd {machine.workspace} && claude --resume {ONE}\n")
    assert "claude is not installed" in result.err
    assert "npm install -g @anthropic-ai/claude-code" in result.err


def test_a_missing_folder_is_reported(machine: Machine) -> None:
    transcript(machine).write(machine.claude)
    machine.install("claude")
    machine.workspace.rmdir()
    result = machine.run("resume", ONE)
    assert result.code == 1
    assert f"The folder {machine.workspace} does not exist" in result.err
    assert not machine.record.exists()


def test_resuming_a_subagent_resumes_its_session(machine: Machine) -> None:
    session = transcript(machine)
    session.delegate("Look around", "There are two ferries.")
    session.write(machine.claude)
    machine.install("claude")
    (agent,) = [
        agent
        for agent in json.loads(machine.run("list", "--subagents", "--json").out)["data"]
        if agent["parent_ref"]
    ]
    machine.run("resume", agent["ref"])
    assert machine.called()["argv"] == ["--resume", ONE]


# --- deleted by the tool ------------------------------------------------------------------------------------


def register(machine: Machine) -> tuple[Path, dict[str, Any]]:
    """Register this process as the one that has the session open."""
    started = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    registry = machine.claude / "sessions" / f"{os.getpid()}.json"
    registry.parent.mkdir(parents=True)
    running = {"pid": os.getpid(), "procStart": started, "sessionId": ONE}
    registry.write_text(json.dumps(running), encoding="utf-8")
    return registry, running


def deleted(machine: Machine) -> Path:
    """Write, sync and delete a session; return the path of its file."""
    path = transcript(machine).write(machine.claude)
    machine.run("sync")
    machine.folder.joinpath("kept").write_bytes(path.read_bytes())
    path.unlink()
    return path


def test_without_restore_a_deleted_session_is_reported_and_nothing_is_written(machine: Machine) -> None:
    path = deleted(machine)
    machine.install("claude")
    for line in (["resume", ONE], ["resume", ONE, "--restore", "--print"], ["resume", ONE, "--json"]):
        machine.run(*line)
        assert not path.exists()
    result = machine.run("resume", ONE)
    assert result.code == 1
    assert "--restore' to restore its file" in result.err
    assert str(path) in result.err
    assert not machine.record.exists()


def test_restore_writes_a_deleted_session_byte_for_byte_and_resumes_it(machine: Machine) -> None:
    path = deleted(machine)
    machine.install("claude")
    result = machine.run("resume", ONE, "--restore", "--yes")
    assert result.code == 0, result.err
    assert path.read_bytes() == machine.folder.joinpath("kept").read_bytes()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert machine.called()["argv"] == ["--resume", ONE]
    assert not json.loads(machine.run("list", "--json").out)["data"][0]["is_gone"]


def test_restore_shows_its_plan_and_asks(machine: Machine) -> None:
    path = deleted(machine)
    machine.install("claude")
    result = machine.run("resume", ONE, "--restore")
    assert (result.code, "pass --yes to confirm" in result.err) == (2, True)
    assert f"create  transcript     {path}" in result.err
    assert (path.exists(), machine.record.exists()) == (False, False)


def test_restore_also_writes_the_files_of_subagents(machine: Machine) -> None:
    transcript(machine).delegate("Look around", "There are two ferries.").write(machine.claude)
    before = {path: path.read_bytes() for path in machine.claude.rglob("*.jsonl")}
    machine.run("sync")
    shutil.rmtree(machine.claude / "projects")
    assert "to restore its 3 files" in machine.run("resume", ONE).err
    machine.install("claude")
    machine.run("resume", ONE, "--restore", "--yes")
    assert {path: path.read_bytes() for path in machine.claude.rglob("*.jsonl")} == before


def test_restore_also_writes_side_files_with_the_current_time(machine: Machine) -> None:
    session = transcript(machine).delegate("Look around", "There are two ferries.")
    session.spill(tool_calls.bash("cat log"), "line\n" * 9000)
    session.back_up_file("src/tz.py", bytes(range(256)))
    session.files[f"tasks/{ONE}/1.json"] = b'{"id":"1","subject":"Fix DST"}'
    session.files[f"{session.folder}/custom-title.json"] = b'{"customTitle":"Ferry"}'
    session.write(machine.claude)
    before = {path: path.read_bytes() for path in machine.claude.rglob("*") if path.is_file()}
    for path in before:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    machine.run("sync")
    for name in ("projects", "tasks", "file-history"):
        shutil.rmtree(machine.claude / name)
    machine.install("claude")
    result = machine.run("resume", ONE, "--restore", "--yes")
    assert result.code == 0, result.err
    after = {path: path.read_bytes() for path in machine.claude.rglob("*") if path.is_file()}
    assert after == before
    assert all(path.stat().st_mtime > 1_700_000_000 + 86_400 for path in after)


def test_side_files_that_are_links_or_too_large_are_not_archived(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_files, "MAX_FILE_BYTES", 1000)
    session = transcript(machine)
    session.files[f"{session.folder}/tool-results/large.txt"] = b"x" * 1001
    session.files[f"{session.folder}/tool-results/small.txt"] = b"x" * 1000
    path = session.write(machine.claude)
    secret = machine.folder / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    (path.with_suffix("") / "tool-results" / "link.txt").symlink_to(secret)
    names = {
        Path(row.path).name
        for unit in ClaudeCode().units(machine.claude)
        for row in ClaudeCode().raw_rows(unit)
    }
    assert names == {"small.txt"}


def test_restore_never_overwrites_a_file(machine: Machine) -> None:
    path = deleted(machine)
    machine.run("sync")
    path.write_text("something else\n", encoding="utf-8")
    machine.run("resume", ONE, "--restore", "--no-sync", "--yes")
    assert path.read_text(encoding="utf-8") == "something else\n"


def test_a_session_that_is_open_already_is_not_opened_twice(machine: Machine) -> None:
    transcript(machine).write(machine.claude)
    machine.install("claude")
    register(machine)
    result = machine.run("resume", ONE)
    assert result.code == 1
    assert f"Process {os.getpid()} has claude-code:{ONE} open" in result.err
    assert not machine.record.exists()


def test_restore_writes_nothing_while_the_tool_has_the_session_open(machine: Machine) -> None:
    path = deleted(machine)
    registry, running = register(machine)
    result = machine.run("resume", ONE, "--restore", "--yes")
    assert (result.code, path.exists()) == (1, False)
    assert f"Process {os.getpid()} has the session" in result.err
    registry.write_text(
        json.dumps(running | {"procStart": "1"}), encoding="utf-8"
    )  # the pid now belongs to another process
    machine.run("resume", ONE, "--restore", "--yes")
    assert path.exists()


@pytest.mark.parametrize("id_", [ONE, None])
def test_a_session_with_only_prompts_is_reported_with_what_to_do_next(
    machine: Machine, id_: str | None
) -> None:
    at = datetime(2026, 1, 9, tzinfo=UTC)
    prompt = Prompt("When does the ferry leave?", at, project=str(machine.workspace), session_id=id_)
    write_prompts(machine.claude, [prompt])
    result = machine.run("resume", "1")
    assert (result.code, result.out) == (1, "")
    assert "cannot be resumed: Claude Code has deleted its messages." in result.err
    command = re.search(r"Run '\S+ (handoff \S+)' to continue in a new session\.", result.err)
    assert command is not None
    assert "When does the ferry leave?" in machine.run(*command[1].split()).out


def test_a_deleted_database_session_is_reported_with_alternatives(machine: Machine) -> None:
    ide = cursor.Home(machine.folder / ".config" / "Cursor")
    ide.composer([cursor.user("one"), cursor.assistant("yes")], workspace=cursor.SHOP, name="kept", id=ONE)
    ide.write()
    machine.run("sync")
    shutil.rmtree(machine.folder / ".config" / "Cursor" / "User")
    result = machine.run("resume", ONE)
    assert result.code == 1
    assert "cannot be restored. There is no" in result.err
    assert "handoff" in result.err


# --- the other tools ----------------------------------------------------------------------------------------


def test_the_editor_is_opened_on_the_workspace(machine: Machine) -> None:
    ide = cursor.Home(machine.folder / ".config" / "Cursor")
    ide.composer(
        [cursor.user("one")], workspace=cursor.local_folder(str(machine.workspace)), name="Ferry times"
    )
    ide.write()
    machine.install("cursor")
    result = machine.run("resume", "1")
    assert (machine.called()["argv"], machine.called()["cwd"]) == (
        [str(machine.workspace)],
        str(machine.workspace),
    )
    assert "“Ferry times”" in result.err


def test_cursor_agent_is_run_in_the_folder_that_its_store_is_named_after(machine: Machine) -> None:
    home = cursor_cli.Home(machine.folder / ".cursor")
    home.chat([cursor.user("one"), cursor.assistant("yes")], cwd=str(machine.workspace), id=ONE)
    machine.install("cursor-agent")
    machine.run("resume", ONE)
    assert (machine.called()["argv"], machine.called()["cwd"]) == (["--resume", ONE], str(machine.workspace))


# --- open ---------------------------------------------------------------------------------------------------


def edited(machine: Machine) -> Path:
    """Write a file that the session's third message changed and that has changed since."""
    file = machine.workspace / "ferry.py"
    session = transcript(machine)
    session.run(tool_calls.edit(str(file), "noon = 12", "noon = 13", original="noon = 12\n"))
    session.write(machine.claude)
    file.write_text("# one\n# two\n# three\nnoon = 13\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("editor", "arguments"),
    [
        ("vim", ["+4", "{}"]),
        ("nano -w", ["-w", "+4", "{}"]),
        ("code --wait", ["--wait", "-g", "{}:4"]),
        ("subl", ["{}:4"]),
        ("something", ["{}"]),
    ],
)
def test_a_file_is_opened_where_the_message_changed_it(
    machine: Machine, editor: str, arguments: list[str]
) -> None:
    file = edited(machine)
    machine.install(editor.split()[0])
    result = machine.run("open", ONE, "2", EDITOR=editor)
    assert result.code == 0, result.err
    assert machine.called()["argv"] == [word.format(file) for word in arguments]


def test_the_workspace_is_opened_without_a_position(machine: Machine) -> None:
    transcript(machine).write(machine.claude)
    machine.install("code")
    machine.run("open", ONE)
    assert machine.called()["argv"] == [str(machine.workspace)]


def write_remote_session(machine: Machine) -> None:
    """Write a session in a folder on another host that read a file there."""
    ide = cursor.Home(machine.folder / ".config" / "Cursor")
    ide.composer(
        [cursor.user("one"), cursor.tool("read_file_v2", {"targetFile": "/srv/shop/cart.py", "offset": 7})],
        workspace=cursor.ssh_folder("build.example", "/srv/shop"),
        name="Cart",
    )
    ide.write()


@pytest.mark.parametrize(("editor", "arguments"), [("", []), ("code --wait", ["--wait"]), ("vim", [])])
def test_a_remote_workspace_is_opened_on_its_host(
    machine: Machine, editor: str, arguments: list[str]
) -> None:
    write_remote_session(machine)
    machine.install(editor.split()[0] if editor else "cursor")
    machine.install("cursor")
    uri = "vscode-remote://ssh-remote+build.example/srv/shop"
    result = machine.run("open", "1", EDITOR=editor)
    assert result.code == 0, result.err
    assert machine.called()["argv"] == [*arguments, "--folder-uri", uri]
    machine.run("resume", "1")
    assert machine.called()["argv"] == ["--folder-uri", uri]


def test_a_file_of_a_remote_workspace_is_opened_on_its_host(machine: Machine) -> None:
    write_remote_session(machine)
    machine.install("cursor")
    result = machine.run("open", "1", "1")
    assert result.code == 0, result.err
    assert machine.called()["argv"][:2] == ["--remote", "ssh-remote+build.example"]
    assert "/srv/shop/cart.py" in machine.called()["argv"][-1]


def test_a_remote_workspace_without_an_editor_gives_the_command(machine: Machine) -> None:
    write_remote_session(machine)
    result = machine.run("open", "1")
    assert result.code == 1
    assert "cursor is not installed" in result.err
    assert result.out.startswith("cursor --folder-uri vscode-remote://ssh-remote+build.example/srv/shop")


def test_open_reports_what_cannot_be_opened(machine: Machine) -> None:
    file = edited(machine)
    assert "names no file" in machine.run("open", ONE, "0").err
    assert "has no message 99" in machine.run("open", ONE, "99").err
    assert "Set EDITOR to your editor" in machine.run("open", ONE, "2").err
    file.unlink()
    result = machine.run("open", ONE, "2", EDITOR="vim")
    assert (result.code, result.err.strip()) == (1, f"{file} does not exist. It was moved or deleted.")
