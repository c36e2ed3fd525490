"""A killed restore of deleted sessions of three tools is rolled back or complete, as is its undo."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.model.session import Filter
from tests.transfer import test_killed_migration, test_killed_workspace
from tests.transfer.test_killed_migration import kill_points
from tests.transfer.test_killed_workspace import KILLS, write_workspace
from tests.transfer.test_restore_sessions import delete_all

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


KEY = re.compile(r'("\w*EncryptionKey":)"[^"]*"')


class Machine(test_killed_workspace.Machine):
    """Six sessions in three tools, which have deleted them, and their archive."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        shutil.rmtree(self.root / "cursor-cli" / "chats")
        for source in ("claude-code", "cursor"):
            delete_all(self.root / source, source)
        with self.open() as history:
            history.sync()
            assert len([one for one in history.all_sessions() if one.is_gone]) == 6

    def state(self) -> dict[str, object]:
        """Return all files. The encryption keys of a session are new after each restore."""
        return {
            name: KEY.sub(r"\1", repr(content)) if name.endswith(".vscdb") else content
            for name, content in super().state().items()
        }

    def restore(self) -> None:
        with self.open() as history:
            result = history.restore_sessions(filter=Filter(is_gone=True))
            assert result.errors == ()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr("backscroll.readers.processes._running", list)
    monkeypatch.setitem(test_killed_migration.WRITERS, "claude-code", write_workspace)
    yield Machine(tmp_path)


@KILLS
def test_the_next_command_ends_a_killed_restore_and_a_second_one_completes_it(
    machine: Machine, kills: int
) -> None:
    before = machine.state()
    machine.save()
    machine.restore()
    after = machine.state()
    machine.reset()
    for number, last in enumerate(kill_points(machine, machine.restore, 1, kills)):
        if number % 2:
            assert machine.run("changes").code == 0
            assert machine.run("restore-session", "--gone", "--dry-run").code in (0, 2), last
            assert machine.state() in (before, after), last
        result = machine.run("restore-session", "--workspace", "old", "--yes")
        assert result.code == 0, (last, result.err)
        assert machine.state() == after, last
        with machine.open() as history:
            assert {one.state for one in history.list_changes()} == {"applied"}, last


@KILLS
def test_the_next_command_ends_a_killed_undo_of_a_restore(machine: Machine, kills: int) -> None:
    before = machine.state()
    machine.restore()
    after = machine.state()
    for last in kill_points(machine, machine.undo, 2, kills):
        with machine.open() as history:
            history.transfers.recover()
        assert machine.state() in (before, after), last
        if machine.state() == after:
            machine.undo()
        assert machine.state() == before, last
