"""A killed ``archive forget`` or ``archive repair`` leaves the old or the new archive."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backscroll.errors import ArchiveError
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from tests.robustness.archived_history import history_of
from tests.robustness.test_repair import damage
from tests.transfer.test_killed_migration import run_and_die

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

KILL_COUNT = int(os.environ.get("KILLS", "3"))
ONE = "10000000-0000-4000-8000-000000000001"
SECRET = "zanzibar7714"
SESSIONS = 8


class Machine:
    """Some sessions, their archive, and a copy of it to start again from."""

    def __init__(self, folder: Path) -> None:
        self._tools, self.home, self._saved = folder / "tools", folder / "home", folder / "saved"
        first = Transcript(session_id=ONE, seed=1).user(f"about {SECRET}").assistant(f"yes, {SECRET}")
        first.write(self._tools / "claude-code")
        for seed in range(2, SESSIONS + 1):
            session = Transcript(seed=seed)
            for number in range(30):
                session.user(f"thing {seed}, part {number}").assistant(f"it is {seed * number}")
            session.write(self._tools / "claude-code")
        for name in ("cursor", "cursor-cli"):
            (self._tools / name).mkdir()
        with self.open() as history:
            history.sync()

    def open(self) -> History:
        return history_of(self._tools, self.home)

    def save(self) -> None:
        shutil.copytree(self.home, self._saved)

    def reset(self) -> None:
        shutil.rmtree(self.home)
        shutil.copytree(self._saved, self.home)

    def content(self) -> dict[str, Any]:
        with self.open() as history:
            return {
                one.ref: (one.title, [message.content for message in history.get_session(one.ref).messages])
                for one in history.all_sessions()
            }

    def kills(self, action: Callable[[], None], seed: int) -> Iterator[int]:
        """Kill an action at random operations, from the same state each time."""
        self.save()
        count = run_and_die(action, 0)
        assert count > 50
        for last in sorted(random.Random(seed).sample(range(1, count - 10), min(KILL_COUNT, count - 11))):
            self.reset()
            assert run_and_die(action, last) == -1
            yield last


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_session_whose_erasure_was_killed_is_there_or_gone(machine: Machine) -> None:
    before = machine.content()

    def forget() -> None:
        with machine.open() as history:
            history.archive_admin.forget(ONE)

    for last in machine.kills(forget, 1):
        with machine.open() as history:
            history.sync()
            assert history.archive_admin.verify() == [], last
        left = machine.content()
        if f"claude-code:{ONE}" in left:
            assert left == before, last
            forget()
        with machine.open() as history:
            assert history.search_sessions("thing").total == SESSIONS - 1, last
            assert history.search_sessions(SECRET).total == 0, last
        assert machine.content() == {ref: one for ref, one in before.items() if not ref.endswith(ONE)}, last
        files = [path for path in machine.home.rglob("*") if path.is_file()]
        assert not [path for path in files if SECRET.encode() in path.read_bytes()], last


def test_a_repair_that_was_killed_leaves_the_damaged_or_the_new_archive(machine: Machine) -> None:
    before = machine.content()
    archive = machine.home / "archive.db"
    damage(archive, 5, 2)
    damaged = archive.read_bytes()

    def repair() -> None:
        with machine.open() as history:
            history.archive_admin.repair()

    for last in machine.kills(repair, 2):
        assert archive.exists(), last
        if archive.read_bytes() == damaged:
            repair()
        try:
            with machine.open() as history:
                history.sync()
                problems = history.archive_admin.verify()
        except ArchiveError as error:
            problems = [str(error)]
        assert problems == [], last
        assert machine.content() == before, last
