"""Nothing is changed while a tool is running, and what one command left half done is rolled back."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backscroll import History
from backscroll.changes.change_log import ChangeLog
from backscroll.changes.change_record import read_record
from backscroll.config import NamedRoot
from backscroll.errors import ChangeConflictError, ChangeNotFoundError, ToolRunningError
from backscroll.readers.processes import may_use_folder
from backscroll.sources.cursor.writing.session_writer import blocking_processes
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_running_process
from tests.cli.run_command import Shell

ONE = "10000000-0000-4000-8000-000000000001"
TWO = "20000000-0000-4000-8000-000000000002"
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Machine:
    """Sessions of Claude Code and Cursor in one folder, and another folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.old, self.new = folder / "ferry", folder / "boat"
        self.claude, self.cursor = folder / "claude", folder / "cursor"
        for path in (self.old, self.new, self.claude):
            path.mkdir()
        self.transcripts = [self.write_transcript(one) for one in (ONE, TWO)]
        home = cursor.Home(self.cursor, generation=5)
        messages = [cursor.user("Rename it"), cursor.assistant("Done.")]
        self.composer = home.composer(messages, workspace=cursor.local_folder(str(self.old))).id
        home.write()
        roots = [NamedRoot("claude-code", self.claude), NamedRoot("cursor", self.cursor)]
        self.history = History(roots=roots, home=folder / "home")
        self.history.sync()

    def write_transcript(self, session_id: str) -> Path:
        session = Transcript(session_id=session_id, cwd=str(self.old))
        return session.user("Where is the quay?").assistant("There.").write(self.claude)

    def open_claude(self, session_id: str) -> None:
        """Register this process as the one that has a session open."""
        started = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
        session = Transcript(session_id=session_id, cwd=str(self.old))
        write_running_process(self.claude, session, os.getpid(), started=started)

    @contextmanager
    def running_editor(self, name: str = "cursor") -> Iterator[int]:
        """Run a program that has Cursor's database open."""
        program = self.folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        shutil.copy(shutil.which("tail") or "/usr/bin/tail", program)
        database = self.cursor / "User" / "globalStorage" / "state.vscdb"
        with subprocess.Popen([program, "-f", database], stdout=subprocess.DEVNULL) as editor:
            try:
                while not may_use_folder(editor.pid, self.cursor):
                    time.sleep(0.01)
                yield editor.pid
            finally:
                editor.kill()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    with machine.history:
        yield machine


# Running tools


@needs_proc
def test_undo_is_refused_while_the_session_is_open(machine: Machine) -> None:
    machine.history.migrate_session([ONE, TWO], machine.new, mode="move")
    machine.open_claude(TWO)
    with pytest.raises(ToolRunningError, match=f"session {TWO} open"):
        machine.history.undo_change()
    assert not machine.transcripts[1].exists()
    assert machine.history.find(TWO).workspace_path == str(machine.new)


@needs_proc
def test_undo_of_a_cursor_session_is_refused_while_cursor_is_running(machine: Machine) -> None:
    machine.history.migrate_session(machine.composer, machine.new, mode="move")
    with machine.running_editor(), pytest.raises(ToolRunningError, match="Close all its windows"):
        machine.history.undo_change()
    assert len(machine.history.undo_change()) == 1


@needs_proc
def test_processes_are_checked_again_after_the_plan_was_made(machine: Machine) -> None:
    plan = machine.history.transfers.plan_sessions([machine.composer], machine.new, mode="move")
    with machine.running_editor():
        result = machine.history.transfers.migrate(plan)
    assert [one.code for one in result.errors] == ["tool-running"]
    assert machine.history.transfers.migrate(plan).success_count == 1


@needs_proc
def test_a_running_cursor_does_not_prevent_changes_of_claude_code(machine: Machine) -> None:
    with machine.running_editor():
        assert machine.history.migrate_session(ONE, machine.new, mode="move").success_count == 1


@needs_proc
def test_an_editor_with_another_name_is_found_by_its_lock_file(machine: Machine) -> None:
    with machine.running_editor("code-oss") as pid:
        assert blocking_processes(machine.cursor, []) == []
        (machine.cursor / "code.lock").write_text(str(pid))
        (blocking,) = blocking_processes(machine.cursor, [])
        assert (blocking.pid, "Close" in blocking.reason) == (pid, True)
        (machine.cursor / "code.lock").unlink()
        (machine.cursor / "SingletonLock").symlink_to(f"{platform.node()}-{pid}")
        assert [one.pid for one in blocking_processes(machine.cursor, [])] == [pid]
    assert blocking_processes(machine.cursor, []) == []


def test_an_editor_on_another_machine_is_found_by_its_lock_file(machine: Machine) -> None:
    (machine.cursor / "SingletonLock").symlink_to("other-host-4242")
    result = machine.history.migrate_session(machine.composer, machine.new, mode="move")
    assert [one.code for one in result.errors] == ["tool-running"]
    assert "running on other-host" in result.errors[0].message
    assert "delete" in result.errors[0].message


def test_the_lock_file_of_an_editor_that_crashed_prevents_nothing(machine: Machine) -> None:
    (machine.cursor / "code.lock").write_text(str(os.getpid()))  # now another process
    assert machine.history.migrate_session(machine.composer, machine.new, mode="move").errors == ()


def test_recent_activity_is_only_a_warning(machine: Machine) -> None:
    os.utime(machine.transcripts[0])
    plan = machine.history.transfers.plan_sessions([ONE], machine.new, mode="move")
    (planned,) = plan.sessions
    assert any("Make sure that it is closed" in warning for warning in planned.plan.changes.warnings)
    assert machine.history.transfers.migrate(plan).success_count == 1


# Interrupted changes


def interrupt(machine: Machine, session_id: str) -> None:
    """Leave a move as a kill before its last step leaves it."""
    log = ChangeLog(machine.folder / "home" / "changes")
    plan = machine.history.transfers.plan_sessions([session_id], machine.new, mode="move").sessions[0].plan
    original = next(path for path in machine.transcripts if path.stem == session_id)
    content = original.read_bytes()
    folder = log.folder / log.apply(plan.changes).id
    original.parent.mkdir(exist_ok=True)
    original.write_bytes(content)
    journal = read_record(folder)
    assert journal is not None
    journal.state = "applying"
    journal.write(folder)


def test_an_interrupted_change_is_listed_and_undo_reverts_only_that(machine: Machine) -> None:
    machine.history.migrate_session(TWO, machine.new, mode="move")
    interrupt(machine, ONE)
    assert [one.is_interrupted for one in machine.history.list_changes()] == [True, False]
    assert machine.history.undo_change() == []
    assert machine.transcripts[0].exists()
    assert len(list(machine.claude.rglob(f"{ONE}.jsonl"))) == 1
    assert machine.history.find(TWO).workspace_path == str(machine.new)
    assert len(machine.history.undo_change()) == 1
    assert machine.transcripts[1].exists()


def test_a_second_run_rolls_an_interrupted_change_back_first(machine: Machine) -> None:
    interrupt(machine, ONE)
    assert machine.history.migrate_session(ONE, machine.new, mode="move").errors == ()
    assert [path.parent.name.endswith("-boat") for path in machine.claude.rglob(f"{ONE}.jsonl")] == [True]


@needs_proc
def test_an_interrupted_change_is_not_rolled_back_while_the_session_is_open(machine: Machine) -> None:
    interrupt(machine, ONE)
    machine.open_claude(ONE)
    with pytest.raises(ToolRunningError):
        machine.history.undo_change()
    assert machine.history.list_changes()[0].is_interrupted


def test_the_command_says_what_it_rolled_back(machine: Machine) -> None:
    interrupt(machine, ONE)
    machine.history.close()
    shell = Shell(machine.folder)
    assert "  interrupted" in shell.run("changes").out
    result = shell.run("undo")
    assert (result.code, f"interrupted: Move claude-code:{ONE}" in result.err) == (0, True)
    assert shell.json("changes")["data"] == []
    assert "nothing to undo" in shell.run("undo", "--yes").err


# Plans and times


def test_a_dry_run_names_every_row(machine: Machine) -> None:
    machine.history.close()
    options = ("--root", f"cursor={machine.cursor}")
    result = Shell(machine.folder).run(
        *options, "migrate", machine.composer, "--to", machine.new, "--mode", "move", "--dry-run", "--json"
    )
    (planned,) = json.loads(result.out)["data"]
    keys = {row["key"] for row in planned["rows"]}
    assert {f"composerData:{machine.composer}", machine.composer} <= keys


def test_moved_files_keep_their_order_and_are_not_old_enough_to_be_deleted(machine: Machine) -> None:
    day, now = 86_400, time.time()
    for path, age in zip(machine.transcripts, (3, 40), strict=True):
        os.utime(path, (now - age * day, now - age * day))
    machine.history.migrate_workspace(machine.old, machine.new, mode="move")
    moved = {path.stem: path.stat().st_mtime for path in machine.claude.rglob("*.jsonl")}
    assert moved[ONE] == pytest.approx(now - 3 * day, abs=2)
    assert moved[TWO] == pytest.approx(now - 15 * day, abs=60)
    machine.history.undo_change()
    assert machine.transcripts[0].stat().st_mtime == pytest.approx(now - 3 * day, abs=2)


def test_an_undone_change_cannot_be_undone_again(machine: Machine) -> None:
    change = machine.history.migrate_session(ONE, machine.new, mode="move").sessions[0].change
    machine.history.undo_change()
    with pytest.raises(ChangeNotFoundError, match="undone already"):
        machine.history.undo_change(change.id)


def test_undo_leaves_only_the_session_that_was_continued(machine: Machine) -> None:
    machine.history.migrate_workspace(machine.old, machine.new, mode="move")
    moved = next(machine.claude.rglob(f"{ONE}.jsonl"))
    with moved.open("ab") as file:
        file.write(b'{"type":"mode","mode":"normal"}\n')
    with pytest.raises(ChangeConflictError, match=r"2 of 3 changes are undone(.|\n)*has changed since"):
        machine.history.undo_change()
    assert (machine.transcripts[0].exists(), machine.transcripts[1].exists()) == (False, True)
    assert machine.history.find(machine.composer).workspace_path == str(machine.old)
