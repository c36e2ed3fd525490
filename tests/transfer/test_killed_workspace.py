"""A killed migration of a whole workspace is continued by a second run, or undone by one undo."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.errors import ChangeNotFoundError
from backscroll.model.transfer import Mode
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Prompt, Transcript, tool_calls
from backscroll.testing.claude_code.side_files import write_prompts
from backscroll.testing.cursor_cli.transcripts import write_transcript
from tests.cli.run_command import Result, backscroll
from tests.transfer import test_killed_migration
from tests.transfer.test_killed_migration import KILL_COUNT, kill_points

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

IDS = [f"{number}0000000-0000-4000-8000-00000000000{number}" for number in range(1, 6)]
DELETED = "60000000-0000-4000-8000-000000000006"
COPY_COUNT = 5
KILLS = pytest.mark.parametrize("kills", [KILL_COUNT, pytest.param(40, marks=pytest.mark.soak)])


class Machine(test_killed_migration.Machine):
    """Five sessions of one folder in three tools, and one that its tool has deleted.

    Also their archive, and a copy of both to start again from.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "claude-code")
        self.old = folder / "old"
        for path in self.root.rglob(f"{DELETED}.jsonl"):
            path.unlink()
        with self.open() as history:
            history.sync()

    def open(self) -> History:
        roots = [NamedRoot(source, self.root / source) for source in ("claude-code", "cursor", "cursor-cli")]
        return History(roots=roots, home=self._folder / "home")

    def migrate(self, mode: Mode) -> None:
        with self.open() as history:
            result = history.migrate_workspace(self.old, self.new, mode=mode)
            assert not result.errors, result.errors

    def run(self, *arguments: str | Path) -> Result:
        roots = [
            f"--root={source}={self.root / source}" for source in ("claude-code", "cursor", "cursor-cli")
        ]
        return backscroll("--home", self._folder / "home", *roots, *arguments)

    def folders(self) -> list[str | None]:
        with self.open() as history:
            history.sync()
            return [one.workspace_path for one in history.all_sessions()]


def write_workspace(root: Path, folder: str) -> None:
    messages = [cursor.user("Rename it"), cursor.assistant("Done.")]
    for session_id in IDS[:2]:
        session = Transcript(session_id=session_id, cwd=folder, version="2.1.288")
        session.user("Rename it").run(tool_calls.bash("ls", "tz.py")).assistant("Done.")
        side = session.write(root / "claude-code").with_suffix("") / "tool-results"
        side.mkdir(parents=True)
        (side / "output.txt").write_text("a long result")
    deleted = Transcript(session_id=DELETED, cwd=folder, version="2.1.288")
    deleted.user("Where is the quay?").assistant("There.").write(root / "claude-code")
    prompts = [Prompt("Rename it", project=folder, session_id=session_id) for session_id in IDS[:2]]
    write_prompts(root / "claude-code", prompts)
    home = cursor.Home(root / "cursor", generation=5)
    for session_id in IDS[2:4]:
        home.composer(messages, workspace=cursor.local_folder(folder), id=session_id)
    home.write()
    cli = cursor_cli.Home(root / "cursor-cli")
    cli.chat(messages, cwd=folder, id=IDS[4])
    write_transcript(root / "cursor-cli", messages, id=IDS[4], cwd=folder)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr("backscroll.readers.processes._running", list)
    monkeypatch.setitem(test_killed_migration.WRITERS, "claude-code", write_workspace)
    yield Machine(tmp_path)


def undo_everything(machine: Machine) -> None:
    """Undo once, as a user does after a kill. Before the first write there is nothing to undo."""
    with suppress(ChangeNotFoundError):
        machine.undo()


@KILLS
def test_one_undo_reverts_a_killed_move_and_a_second_run_completes_it(machine: Machine, kills: int) -> None:
    before = machine.state()
    machine.save()
    machine.migrate("move")
    after = machine.state()
    assert machine.folders() == [str(machine.new)] * 6
    machine.reset()
    for number, last in enumerate(kill_points(machine, lambda: machine.migrate("move"), 4, kills)):
        if number % 2:
            machine.migrate("move")
            assert machine.state() == after, last
        undo_everything(machine)
        assert machine.state() == before, last
        assert machine.folders() == [str(machine.old)] * 6


@KILLS
def test_one_undo_reverts_a_killed_copy_and_a_second_run_completes_it(machine: Machine, kills: int) -> None:
    before = machine.state()
    for number, last in enumerate(kill_points(machine, lambda: machine.migrate("copy"), 5, kills)):
        if number % 2:
            machine.migrate("copy")
            assert machine.folders().count(str(machine.new)) == COPY_COUNT, last
        undo_everything(machine)
        assert machine.state() == before, last
        assert machine.folders() == [str(machine.old)] * 6


@KILLS
def test_a_second_undo_completes_a_killed_one(machine: Machine, kills: int) -> None:
    before = machine.state()
    machine.migrate("move")
    for last in kill_points(machine, machine.undo, 6, kills):
        undo_everything(machine)
        assert machine.state() == before, last


# Killed after the last write


def kill_at(machine: Machine, place: str, action: Callable[[], None], call: int = 1) -> None:
    """Run an action in a child process that is killed when it calls a function for the given time."""
    child = os.fork()
    if child == 0:
        calls = iter(range(1, call))

        def step(*_: object) -> None:
            if next(calls, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        patch = pytest.MonkeyPatch()
        patch.setattr(place, step)
        try:
            action()
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.fixture
def killed_sync() -> str:
    return "backscroll.transfer.transfers.sync"


@pytest.mark.parametrize("options", [(), ("--no-sync",)])
def test_a_killed_move_that_is_complete_says_so_when_it_runs_again(
    machine: Machine, killed_sync: str, options: tuple[str, ...]
) -> None:
    kill_at(machine, killed_sync, lambda: machine.migrate("move"))
    command = ("migrate-workspace", machine.old, machine.new, "--mode", "move", "--yes", *options)
    for _ in range(2):
        again = machine.run(*command)
        assert (again.code, again.out.count(f"is in {machine.new} already")) == (0, 6), again.err


def test_a_killed_move_of_one_session_says_that_it_is_moved_already(
    machine: Machine, killed_sync: str
) -> None:
    def move() -> None:
        with machine.open() as history:
            history.migrate_session(IDS[0], machine.new, mode="move")

    kill_at(machine, killed_sync, move)
    again = machine.run("migrate", IDS[0], "--to", machine.new, "--mode", "move", "--yes")
    assert (again.code, f"is in {machine.new} already" in again.out) == (0, True), again.err


def test_a_complete_move_that_runs_again_says_so(machine: Machine) -> None:
    command = ("migrate-workspace", machine.old, machine.new, "--mode", "move", "--yes")
    assert machine.run(*command).code == 0
    again = machine.run(*command)
    assert (again.code, again.out.count(f"is in {machine.new} already")) == (0, 6), again.err


def test_a_killed_copy_is_not_repeated_but_a_complete_one_is(machine: Machine, killed_sync: str) -> None:
    kill_at(machine, killed_sync, lambda: machine.migrate("copy"))
    command = ("migrate-workspace", machine.old, machine.new, "--yes")
    again = machine.run(*command)
    assert (again.code, again.out.count("is copied already: ")) == (0, 5), again.err
    assert machine.folders().count(str(machine.new)) == COPY_COUNT
    third = machine.run(*command)
    assert (third.code, "already" in third.out) == (0, False), third.err
    assert machine.folders().count(str(machine.new)) == 2 * COPY_COUNT
    assert machine.run("undo", "--yes").code == 0
    assert machine.folders().count(str(machine.new)) == COPY_COUNT


def test_the_command_undoes_the_whole_migration_after_a_kill_in_its_middle(machine: Machine) -> None:
    before = machine.state()
    kill_at(machine, "backscroll.changes.change_log.remove_empty", lambda: machine.migrate("move"), 3)
    assert machine.state() != before
    undone = machine.run("undo", "--yes")
    assert (undone.code, machine.state()) == (0, before), undone.err


def test_an_undo_that_runs_again_says_so(machine: Machine) -> None:
    machine.migrate("move")
    with machine.open() as history:
        change_id = history.list_changes()[-1].id
    assert machine.run("undo", change_id, "--yes").code == 0
    again = machine.run("undo", change_id, "--yes")
    assert (again.code, again.out) == (0, f"Change {change_id} is undone already.\n"), again.err


def test_a_killed_undo_does_not_revert_an_earlier_command(machine: Machine) -> None:
    with machine.open() as history:
        history.migrate_session(IDS[0], machine.new, mode="move")
        history.migrate_session(IDS[1], machine.new, mode="move")
    kill_at(machine, "backscroll.changes.change_log.remove_empty", machine.undo)
    again = machine.run("undo", "--yes")
    assert again.code == 0, again.err
    assert machine.folders().count(str(machine.new)) == 1


def test_an_undo_that_was_killed_after_its_last_write_reverts_nothing_else(
    machine: Machine, killed_sync: str
) -> None:
    with machine.open() as history:
        history.migrate_session(IDS[0], machine.new, mode="move")
        copied = history.migrate_session(IDS[1:3], machine.new)
        assert copied.success_count == 2
    before = machine.folders()
    kill_at(machine, killed_sync, machine.undo)
    again = machine.run("undo", "--yes")
    assert (again.code, "is undone" in again.out) == (0, True), again.err
    after = machine.folders()
    assert (before.count(str(machine.new)), after.count(str(machine.new))) == (3, 1)
