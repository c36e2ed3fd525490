"""During a long sync, a terminal gets an answer at once, and a script gets complete data."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.archive.archive import Archive
from backscroll.archive.sync_state import is_locked, sync_lock
from backscroll.config import NamedRoot
from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.index.store import Index
from backscroll.ingest import background_sync
from backscroll.stores.indexer import IndexAccess
from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Shell
from tests.cli.syncing_process import SYNC_WITH_POOL, syncing_process
from tests.cli.terminal import in_terminal, type_in_terminal, without_escapes


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    Transcript(seed=1).user("the first ferry").assistant("answer").write(shell.root)
    return shell


def open_history(shell: Shell) -> History:
    return History(home=shell.home, roots=[NamedRoot("claude-code", shell.root)])


def test_the_first_list_at_a_terminal_shows_the_sessions(shell: Shell) -> None:
    output = without_escapes(in_terminal(*shell.options, "list"))
    assert "the first ferry" in output
    shell.run("sync")  # waits for the background process, which a busy machine delays
    assert "incomplete" not in in_terminal(*shell.options, "list")
    assert "complete; units read: 1" in (shell.home / "sync.log").read_text()
    assert (shell.home / "sync.log").stat().st_mode & 0o077 == 0


def test_a_terminal_gets_an_incomplete_answer_during_the_first_sync(shell: Shell) -> None:
    with open_history(shell) as history:
        assert history.archive_path.parent.exists() or history.is_complete is False
        archive = history.archive_path
    with syncing_process(archive):
        output = without_escapes(in_terminal(*shell.options, "list"))
    assert "Syncing in the background: 30 % done, about 25 s left. " in output
    assert "Results are incomplete until then." in output
    assert "sync --stop" in output
    assert "No history found" not in output


def test_a_script_waits_until_the_sync_is_complete(shell: Shell) -> None:
    with open_history(shell) as history:
        assert not history.is_complete
        archive = history.archive_path
    released = threading.Event()

    def hold() -> None:
        with sync_lock(archive, None):
            released.wait(2.0)

    thread = threading.Thread(target=hold)
    thread.start()
    time.sleep(0.2)
    started = time.monotonic()
    threading.Timer(1.5, released.set).start()
    document = shell.json("list")
    thread.join()
    assert time.monotonic() - started > 1.0
    assert document["is_complete"] is True
    assert document["pagination"]["total"] == 1


def test_no_wait_returns_partial_data_that_says_so(shell: Shell) -> None:
    with open_history(shell) as history:
        archive = history.archive_path
        assert not history.is_complete
    with syncing_process(archive):
        result = shell.run("list", "--json", "--no-wait")
    document = json.loads(result.out)
    assert document["is_complete"] is False
    assert document["data"] == []


def test_sync_stop_ends_the_background_process(shell: Shell) -> None:
    with open_history(shell) as history:
        archive = history.archive_path
        assert not history.is_complete
    with syncing_process(archive) as process:
        result = shell.run("sync", "--stop")
        assert result.out == "Stopped. What was read is saved; the next sync continues.\n"
        assert process.wait(timeout=5) != 0
    assert shell.run("sync", "--stop").out == "No sync is running in the background.\n"


def test_a_stopped_sync_leaves_no_warning_in_the_log(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_sync, "_WORKER_CODE", SYNC_WITH_POOL)
    with open_history(shell) as history:
        assert not history.is_complete
        assert history.background_sync.start()
        wait_until(lambda: history.background_sync.status().percent == 30)
        assert history.background_sync.stop()
        tracker = Path("/proc") / (shell.home / "tracker").read_text() / "stat"
        wait_until(lambda: not tracker.exists() or ") Z " in tracker.read_text())
        assert (shell.home / "sync.log").read_text() == ""


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_next_sync_completes_what_a_stopped_one_left(shell: Shell) -> None:
    with open_history(shell) as history:
        assert not history.is_complete
    assert shell.json("list")["is_complete"] is True
    with open_history(shell) as history:
        assert history.is_complete


def test_a_large_change_is_handed_to_a_background_process(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_sync, "MAX_FOREGROUND_BYTES", 100)
    with open_history(shell) as history:
        history.sync()
        Transcript(seed=2).user("the second ferry").assistant("answer").write(shell.root)
        history.background_sync.refresh()
        assert (shell.home / "sync.log").exists()
        history.sync()  # waits for the process
        assert history.is_complete
        assert history.list_sessions().pagination.total == 2


def test_a_small_change_is_read_by_the_command_itself(shell: Shell) -> None:
    with open_history(shell) as history:
        history.sync()
        Transcript(seed=2).user("the second ferry").assistant("answer").write(shell.root)
        assert history.background_sync.refresh().is_complete
        assert history.list_sessions().pagination.total == 2
    assert not (shell.home / "sync.log").exists()


def test_quitting_the_terminal_ui_leaves_the_sync_to_the_background(shell: Shell) -> None:
    with open_history(shell) as history:
        archive = history.archive_path
        assert not history.is_complete
    with syncing_process(archive):
        typed = [("syncing 30 %", "q")]
        code, output = type_in_terminal(*shell.options, "tui", typed=typed)
    assert code == 0
    assert "Syncing in the background: 30 % done" in output.rpartition("syncing 30 %")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["tag", "1", "ci"],
        ["untag", "1", "ci"],
        ["star", "1"],
        ["unstar", "1"],
        ["note", "1", "text"],
        ["note", "1", "--delete", "1"],
        ["rename", "1", "title"],
        ["archive", "forget", "1"],
    ],
)
def test_a_change_during_an_incomplete_sync_requires_an_id(shell: Shell, arguments: list[str]) -> None:
    shell.run("sync")
    mark_incomplete(shell)
    result = shell.run(*arguments)
    assert result.code == 2
    assert "The sync is not complete, so index 1 can soon mean another session." in result.err
    assert f"It is now claude-code:{session_id(shell)} (the first ferry)." in result.err
    assert "sync' first to complete the sync." in result.err


def test_during_an_incomplete_sync_an_id_can_be_changed_and_an_index_can_be_read(shell: Shell) -> None:
    shell.run("sync")
    mark_incomplete(shell)
    assert shell.run("tag", session_id(shell)[:8], "ci").code == 0
    assert shell.run("note", "1").out.startswith("the first ferry")
    assert "the first ferry" in shell.run("show", "1", "--no-sync").out


def test_the_library_refuses_an_index_for_a_change_during_an_incomplete_sync(shell: Shell) -> None:
    with open_history(shell) as history:
        history.sync()
        mark_incomplete(shell)
        with pytest.raises(UsageError, match="index 1"):
            history.annotations.star("1")
        with pytest.raises(UsageError, match="index 1"):
            history.archive_admin.forget("1")
        history.sync()
        assert history.annotations.star("1").is_starred


def mark_incomplete(shell: Shell) -> None:
    with open_history(shell) as history, closing(Archive(history.archive_path)) as archive:
        archive.sync_state.mark_incomplete()


def session_id(shell: Shell) -> str:
    return str(shell.run("list", "--columns", "id", "--no-sync").out.strip())


def test_the_sync_lock_is_held_until_the_index_is_written(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    update = IndexAccess.update

    def observed_update(self: IndexAccess) -> bool:
        held.append(is_locked(shell.home / "archive.db"))
        return update(self)

    monkeypatch.setattr(IndexAccess, "update", observed_update)
    with open_history(shell) as history:
        history.sync()
    assert held == [True]


def test_a_sync_is_incomplete_while_another_process_writes_the_index(shell: Shell) -> None:
    with open_history(shell) as history:
        history.sync()
        Transcript(seed=2).user("the second ferry").write(shell.root)
        with closing(Archive(history.archive_path)) as archive:
            archive.sync_state.mark_incomplete()
        with Index(history.archive_path.parent / "index").writer() as writer:
            assert writer is not None
            history.sync()
            assert not history.is_complete
        history.sync()
        assert history.is_complete
        assert [match.match for match in history.search_sessions("second").data] == ["the second ferry"]
