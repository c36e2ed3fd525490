"""The server's sync: a long one runs in another process, whose progress is reported."""

import time
from collections.abc import Callable
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.mcp.call import BackgroundSync
from backscroll.testing.claude_code import Transcript
from tests.cli.syncing_process import syncing_process

TIMEOUT_SECONDS = 30.0


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT_SECONDS
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


def make_sync(folder: Path) -> BackgroundSync:
    Transcript(seed=1).user("the first ferry").assistant("answer").write(folder / "claude")
    roots = [NamedRoot("claude-code", folder / "claude")]
    return BackgroundSync(lambda: History(home=folder / "home", roots=roots))


def test_the_first_sync_runs_in_another_process(tmp_path: Path) -> None:
    sync = make_sync(tmp_path)
    sync.start()
    assert sync.is_incomplete
    wait_until(lambda: not sync.is_incomplete)
    sync.close()
    assert "complete; units read: 1" in (tmp_path / "home" / "sync.log").read_text()


def test_the_note_has_the_progress_of_the_syncing_process(tmp_path: Path) -> None:
    sync = make_sync(tmp_path)
    with History(home=tmp_path / "home", roots=[NamedRoot("claude-code", tmp_path)]) as history:
        assert not history.is_complete
    with syncing_process(tmp_path / "home" / "archive.db"):
        sync.start()
        wait_until(lambda: "30 % done" in (sync.note or ""))
        sync.close()
