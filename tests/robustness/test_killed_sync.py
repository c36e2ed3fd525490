"""The next sync completes one that was killed at any point."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.robustness.archived_history import archive_content, history_of, options
from tests.robustness.child_process import ChildProcess, kill_points

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs process groups and signals"),
    pytest.mark.usefixtures("temporary"),
]

KILL_COUNT = int(os.environ.get("KILLS", "5"))


def test_after_a_kill_at_any_point_the_next_sync_gives_the_same_content(
    folder: Path, undisturbed: dict[str, Any], tmp_path: Path, temporary: Path
) -> None:
    arguments = [*options(folder), "sync"]
    for number, (seconds, statement) in enumerate(
        kill_points("--home", tmp_path / "counted", *arguments, count=KILL_COUNT, seed=7)
    ):
        home = tmp_path / f"killed-{number}"
        running = ChildProcess("--home", home, *arguments, LAST_STATEMENT=str(statement))
        if not statement:
            time.sleep(seconds)
            running.signal(signal.SIGKILL)
        running.end()
        with history_of(folder, home) as history:
            history.sync()
        now = archive_content(folder, home, tmp_path)
        for what, before in undisturbed.items():
            assert now[what] == before, (what, seconds, statement)
        shutil.rmtree(home)
    subprocess.run(
        [sys.executable, "-c", "from backscroll.readers.temp_folder import TempFolder; TempFolder().close()"]
    )
    assert list(temporary.iterdir()) == []


def test_worker_processes_end_when_the_main_process_is_killed(
    folder: Path, tmp_path: Path, temporary: Path
) -> None:
    running = ChildProcess("--home", tmp_path / "home", *options(folder), "sync", SLOW="60")
    running.wait_for(temporary, "*/0.db")
    running.process.kill()
    running.end()  # waits until every process has closed its output


def test_ctrl_c_prints_a_message_and_leaves_a_valid_archive(
    folder: Path, undisturbed: dict[str, Any], tmp_path: Path, temporary: Path
) -> None:
    home = tmp_path / "home"
    running = ChildProcess("--home", home, *options(folder), "sync", SLOW="1")
    running.wait_for(temporary, "*/1.db")
    running.signal(signal.SIGINT)
    code, out, err = running.end()
    assert (code, out) == (130, "")
    assert err.strip() == "Interrupted. Completed work is saved."
    assert list(temporary.iterdir()) == []
    with history_of(folder, home) as history:
        history.sync()
    assert archive_content(folder, home, tmp_path) == undisturbed
