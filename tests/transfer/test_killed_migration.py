"""A killed migration leaves the old or the new state, and a second run or undo finishes it."""

import os
import random
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.model.transfer import Mode
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Prompt, Transcript, tool_calls
from backscroll.testing.claude_code.side_files import write_prompts
from backscroll.testing.cursor_cli.transcripts import write_transcript
from tests.transfer.test_every_store import database_rows

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

KILL_COUNT = int(os.environ.get("KILLS", "3"))
ONE = "10000000-0000-4000-8000-000000000001"
EVENTS = frozenset(
    f"os.{name}" for name in ("rename", "link", "remove", "mkdir", "rmdir", "utime", "chmod")
) | {"open"}


def write_claude_code(root: Path, folder: str) -> None:
    session = Transcript(session_id=ONE, cwd=folder, version="2.1.288")
    session.user("Rename it").run(tool_calls.bash("ls", "tz.py")).assistant("Done.")
    side = session.write(root).with_suffix("") / "tool-results"
    side.mkdir(parents=True)
    (side / "output.txt").write_text("a long result")
    write_prompts(root, [Prompt("Rename it", project=folder, session_id=ONE)])


def write_cursor(root: Path, folder: str) -> None:
    home = cursor.Home(root, generation=5)
    workspace = cursor.local_folder(folder)
    home.composer([cursor.user("Rename it"), cursor.assistant("Done.")], workspace=workspace, id=ONE)
    home.composer([cursor.user("Another"), cursor.assistant("Yes.")], workspace=workspace)
    home.write()


def write_cursor_cli(root: Path, folder: str) -> None:
    home = cursor_cli.Home(root)
    messages = [cursor.user("Rename it"), cursor.assistant("Done.")]
    home.chat(messages, cwd=folder, id=ONE)
    write_transcript(root, messages, id=ONE, cwd=folder)


WRITERS: dict[str, Callable[[Path, str], None]] = {
    "claude-code": write_claude_code,
    "cursor": write_cursor,
    "cursor-cli": write_cursor_cli,
}


class Machine:
    """One session of a source, its archive, and a copy of both to start again from."""

    def __init__(self, folder: Path, source: str) -> None:
        self._folder, self._source = folder / "work", source
        self._saved = folder / "saved"
        self.root = self._folder / "root"
        self.new, old = folder / "new", folder / "old"  # never reset: Cursor's id depends on the inode
        for path in (self.root, self.new, old):
            path.mkdir(parents=True)
        WRITERS[source](self.root, str(old))
        with self.open() as history:
            history.sync()

    def open(self) -> History:
        return History(roots=[NamedRoot(self._source, self.root)], home=self._folder / "home")

    def save(self) -> None:
        shutil.rmtree(self._saved, ignore_errors=True)
        shutil.copytree(self._folder, self._saved, symlinks=True)

    def reset(self) -> None:
        shutil.rmtree(self._folder)
        shutil.copytree(self._saved, self._folder, symlinks=True)

    def migrate(self, mode: Mode) -> None:
        with self.open() as history:
            history.migrate_session(ONE, self.new, mode=mode)

    def undo(self) -> None:
        with self.open() as history:
            history.undo_change()

    def state(self) -> dict[str, object]:
        """Return all files, databases of the editor as rows without the time of the change."""
        found: dict[str, object] = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if path.suffix == ".vscdb":
                found[name] = without_version(database_rows(path))
            elif path.is_file() and not path.name.endswith(("-shm", ".vscdb-wal", ".vscdb-journal")):
                found[name] = path.read_bytes()
        return found

    def session_count(self) -> int:
        with self.open() as history:
            history.sync()
            sessions = [one for one in history.all_sessions() if not one.is_gone]
            assert all(history.get_session(one.ref).messages for one in sessions)
            return len(sessions)


def without_version(tables: dict[str, list[tuple[object, ...]]]) -> object:
    return {
        name: [row for row in rows if b".version" not in repr(row).encode()] for name, rows in tables.items()
    }


def run_and_die(action: Callable[[], None], last: int) -> int:
    """Run an action in a child process that is killed at an operation on files or databases.

    Return the number of operations if it was not killed, else -1.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            count = [0]
            install_counter(count, last)
            action()
            os.write(writing, str(count[0]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        output = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return int(output) if output else -1


def install_counter(count: list[int], last: int) -> None:
    def step(*_: object) -> None:
        count[0] += 1
        if count[0] == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        is_reading = event == "open" and not arguments[2] & os.O_ACCMODE
        if event in EVENTS and not is_reading:
            step()

    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        db = connect(*arguments, **options)
        db.set_trace_callback(step)
        return db

    sqlite3.connect = traced  # type: ignore[assignment]
    sys.addaudithook(hook)


def kill_points(
    machine: Machine, action: Callable[[], None], seed: int, kills: int = KILL_COUNT
) -> Iterator[int]:
    """Yield random operations of an action, from a new state each time."""
    machine.save()
    count = run_and_die(action, 0)
    assert count > 100
    # Not the last ones: the first run may have a few more, for example to create an index.
    for last in sorted(random.Random(seed).sample(range(1, count - 20), kills)):
        machine.reset()
        assert run_and_die(action, last) == -1
        yield last
        assert not list(machine.root.rglob("*.part")), last


@pytest.fixture(params=WRITERS)
def machine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr("backscroll.readers.processes._running", list)
    return Machine(tmp_path, request.param)


def test_a_killed_move_is_finished_by_a_second_run_or_reverted_by_undo(machine: Machine) -> None:
    before = machine.state()
    machine.save()
    machine.migrate("move")
    after = machine.state()
    assert after != before
    machine.reset()
    for number, last in enumerate(kill_points(machine, lambda: machine.migrate("move"), 1)):
        if number % 2:
            machine.migrate("move")
            assert machine.state() == after, last
        else:
            with machine.open() as history:
                if history.transfers.changes():
                    history.undo_change()
                history.transfers.recover()
            assert machine.state() == before, last


def test_a_killed_copy_is_finished_by_a_second_run_or_reverted_by_undo(machine: Machine) -> None:
    before = machine.state()
    count = machine.session_count()
    for number, last in enumerate(kill_points(machine, lambda: machine.migrate("copy"), 2)):
        with machine.open() as history:
            if history.transfers.changes():
                history.undo_change()
            history.transfers.recover()
        assert machine.state() == before, last
        if number % 2:
            machine.migrate("copy")
            assert machine.session_count() == count + 1, last


def test_a_killed_undo_is_finished_by_a_second_one(machine: Machine) -> None:
    before = machine.state()
    machine.migrate("move")
    for last in kill_points(machine, machine.undo, 3):
        with machine.open() as history:
            history.transfers.recover()
            if not history.transfers.changes()[0].is_undone:
                history.undo_change()
        assert machine.state() == before, last
