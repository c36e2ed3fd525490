"""A full, read-only or locked place, a running tool or another process: one sentence, nothing half done."""

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_running_process
from tests.cli.run_command import COMMAND, Result, backscroll
from tests.robustness.test_full_disk import can_mount
from tests.transfer.test_every_store import database_rows

ONE, TWO, THREE, FOUR = (f"{number}0000000-0000-4000-8000-000000000001" for number in range(1, 5))
SOURCES = ("claude-code", "cursor")
READING = ("sync", "backup create")  # they change no file of a tool
WRITING = ("restore-session", "migrate", "backup restore")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Machine:
    """Four sessions of two tools, of which each has deleted one, their archive, and a backup with all."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tools, self.home = folder, folder / "tools", folder / "home"
        self.out, self.backup = folder / "out", folder / "whole.zip"
        self.old, self.new = folder / "old", folder / "new"
        for path in (self.tools, self.out, self.old, self.new):
            path.mkdir(parents=True)
        for session_id in (ONE, TWO):
            session = Transcript(session_id=session_id, cwd=str(self.old))
            session.user("Where is the quay?").assistant("There.").write(self.tools / "claude-code")
        ide = cursor.Home(self.tools / "cursor", generation=5)
        for session_id in (THREE, FOUR):
            messages = [cursor.user("Mend it"), cursor.assistant("Done.")]
            ide.composer(messages, workspace=cursor.local_folder(str(self.old)), id=session_id)
        ide.write()
        self.database = ide.database
        with self.open() as history:
            history.sync()
            history.create_backup(self.backup)
            next(self.tools.rglob(f"{ONE}.jsonl")).unlink()
            with closing(sqlite3.connect(self.database)) as db, db:
                db.execute("delete from cursorDiskKV where key like ?", [f"%{THREE}%"])
                db.execute("delete from composerHeaders where composerId = ?", [THREE])
            history.sync()

    def open(self) -> History:
        roots = [NamedRoot(source, self.tools / source) for source in SOURCES]
        return History(roots=roots, home=self.home)

    def arguments(self, operation: str) -> list[str]:
        """Return the command line of an operation."""
        roots = [f"--root={source}={self.tools / source}" for source in SOURCES]
        command = {
            "sync": ["sync"],
            "restore-session": ["restore-session", "--gone", "--yes"],
            "migrate": ["migrate", TWO, FOUR, "--to", str(self.new), "--mode", "move", "--yes"],
            "backup create": ["backup", "create", "-o", str(self.out / "new.zip")],
            "backup restore": ["backup", "restore", str(self.backup), "--yes"],
        }[operation]
        return ["--home", str(self.home), *roots, *command]

    def run(self, operation: str) -> Result:
        return backscroll(*self.arguments(operation))

    def files(self) -> dict[str, object]:
        """Return the files of the tools, databases as rows, and the new backup."""
        return {
            str(path): database_rows(path) if path.suffix == ".vscdb" else path.read_bytes()
            for folder in (self.tools, self.out)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.endswith(("-shm", "-wal", "-journal"))
        }

    def is_done(self, operation: str) -> bool:
        """Return whether an operation has its effect."""
        with self.open() as history:
            history.sync()
            sessions = {one.id: one for one in history.all_sessions()}
            assert not [one for one in history.list_changes() if one.is_interrupted]
            if operation == "backup create":
                return history.validate_backup(self.out / "new.zip").status == "valid"
            if operation == "migrate":
                return all(sessions[one].workspace_path == str(self.new) for one in (TWO, FOUR))
            if operation == "sync":
                return len(sessions) == 4
            return not any(one.is_gone for one in sessions.values())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def assert_clear(result: Result) -> None:
    """Check that a command failed with one sentence for each session that it names, and no traceback."""
    assert result.code in (1, 2, 3), (result.out, result.err)
    assert "Traceback" not in result.err
    lines = [line for line in (result.out + result.err).splitlines() if line]
    assert lines, "nothing was said"
    assert all(len(line) < 600 for line in lines)


# Disks

DISKS = {"tools": ("restore-session", "migrate", "backup restore"), "out": ("backup create",)}
DISKS["home"] = ("sync", "restore-session", "migrate", "backup create", "backup restore")
STATES = {
    "full": ("dd if=/dev/zero of={disk}/filler bs=64k 2>/dev/null; true", "rm {disk}/filler"),
    "read-only": ("mount -o remount,ro {disk}", "mount -o remount,rw {disk}"),
}


@pytest.mark.parametrize(("disk", "operation"), [(disk, one) for disk, all_ in DISKS.items() for one in all_])
@pytest.mark.parametrize("state", STATES)
def test_a_disk_without_space_or_write_access(
    machine: Machine, tmp_path: Path, state: str, disk: str, operation: str
) -> None:
    if not can_mount():
        pytest.skip("cannot mount a tmpfs here")
    saved = tmp_path / "saved"
    if operation == "sync":  # something to write
        Transcript(session_id=ONE, cwd=str(machine.old)).user("Again").write(machine.tools / "claude-code")
    before = machine.files()
    machine.folder.joinpath(disk).rename(saved)
    place = machine.folder / disk
    place.mkdir()
    command = shlex.join(map(str, [COMMAND, *machine.arguments(operation)]))
    begin, end = (line.format(disk=place) for line in STATES[state])
    script = f"""
        mount -t tmpfs -o size=120m t {place} && cp -a {saved}/. {place}
        {begin}
        {command} > {tmp_path}/out 2> {tmp_path}/err; echo $? > {tmp_path}/code
        {end}
        mkdir {tmp_path}/after && cp -a {place}/. {tmp_path}/after
    """
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    code, out, err = ((tmp_path / name).read_text() for name in ("code", "out", "err"))
    assert_clear(Result(subprocess.CompletedProcess([], int(code), out, err)))
    words = ("free space", "space left", "full", "are free") if state == "full" else ("ead-only", "EROFS")
    assert any(word in out + err for word in words), err
    place.rmdir()
    shutil.copytree(tmp_path / "after", place)
    assert machine.files() == before
    again = machine.run(operation)
    assert again.code == 0, again.err
    assert machine.is_done(operation)


# A locked database


@contextmanager
def locked(database: Path) -> Iterator[None]:
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.execute("pragma journal_mode = delete")
        db.execute("begin exclusive")
        yield
        db.execute("rollback")


@pytest.mark.parametrize(
    "operation",
    [  # the others wait for 10 seconds
        pytest.param(each, marks=() if each in ("sync", "backup restore") else pytest.mark.soak)
        for each in (*READING, *WRITING)
    ],
)
def test_a_locked_database(machine: Machine, operation: str) -> None:
    before = machine.files()
    with locked(machine.database):
        result = machine.run(operation)
    if operation != "sync":
        assert_clear(result)
        assert "locked" in result.out + result.err
    after = machine.files()
    assert after[str(machine.database)] == before[str(machine.database)]
    (machine.out / "new.zip").unlink(missing_ok=True)
    assert machine.run(operation).code == 0
    assert machine.is_done(operation)


# Running tools


@needs_linux
@pytest.mark.parametrize("operation", [*READING, *WRITING])
def test_running_tools(machine: Machine, operation: str) -> None:
    before = machine.files()
    program = machine.folder / "bin" / "cursor"
    program.parent.mkdir()
    shutil.copy(shutil.which("tail") or "/usr/bin/tail", program)
    started = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    session = Transcript(session_id=TWO if operation == "migrate" else ONE, cwd=str(machine.old))
    path = write_running_process(machine.tools / "claude-code", session, os.getpid(), started=started)
    with subprocess.Popen([program, "-f", machine.database], stdout=subprocess.DEVNULL) as editor:
        try:
            result = machine.run(operation)
        finally:
            editor.kill()
    shutil.rmtree(path.parent)
    if operation in READING:
        assert result.code == 0, result.err
        return
    assert_clear(result)
    assert machine.files() == before
    assert machine.run(operation).code == 0
    assert machine.is_done(operation)


# A session that grows meanwhile, and another process


@pytest.mark.parametrize("operation", [*READING, *WRITING])
def test_a_growing_session_loses_nothing(machine: Machine, operation: str) -> None:
    growing = Transcript(session_id="50000000-0000-4000-8000-000000000001", cwd=str(machine.old))
    path = growing.user("Begin").assistant("Begun.").write(machine.tools / "claude-code")
    stop, written = Event(), [path.read_bytes()]

    def grow() -> None:
        with path.open("ab", buffering=0) as file:
            while not stop.is_set():
                line = b'{"type":"mode","mode":"normal","number":%d}\n' % len(written)
                file.write(line)
                written.append(line)
                time.sleep(0.001)

    writer = Thread(target=grow)
    writer.start()
    try:
        result = machine.run(operation)
    finally:
        stop.set()
        writer.join()
    assert result.code == 0, result.err
    assert path.read_bytes() == b"".join(written)
    assert machine.is_done(operation) or operation == "sync"


@pytest.mark.parametrize("operation", [*READING, *WRITING])
def test_two_processes_at_once(machine: Machine, operation: str) -> None:
    command = [COMMAND, *machine.arguments(operation)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    results = []
    for process in running:
        out, err = process.communicate(timeout=120)
        results.append(Result(subprocess.CompletedProcess([], process.returncode, out, err)))
    assert {one.code for one in results} & {0, 3}, [one.err for one in results]
    for one in results:
        if one.code:
            assert_clear(one)
    if not machine.is_done(operation):  # each has moved one session
        assert machine.run(operation).code == 0
    assert machine.is_done(operation)
