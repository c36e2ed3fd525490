"""A sync that is killed at any moment is completed by the next one."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.robustness.histories import history_of, options, told
from tests.robustness.killing import Running, moments

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs process groups and signals"),
    pytest.mark.usefixtures("temporary"),
]

MOMENTS = int(os.environ.get("KILLS", "10"))


def test_killed_at_any_moment_and_synced_again_it_tells_the_same(
    folder: Path, undisturbed: dict[str, Any], tmp_path: Path, temporary: Path
) -> None:
    arguments = [*options(folder), "sync"]
    for number, (seconds, statement) in enumerate(
        moments("--home", tmp_path / "counted", *arguments, count=MOMENTS, seed=7)
    ):
        home = tmp_path / f"killed-{number}"
        running = Running("--home", home, *arguments, LAST_STATEMENT=str(statement))
        if not statement:
            time.sleep(seconds)
            running.signal(signal.SIGKILL)
        running.end()
        with history_of(folder, home) as history:
            history.sync()
        now = told(folder, home, tmp_path)
        for what, before in undisturbed.items():
            assert now[what] == before, (what, seconds, statement)
        shutil.rmtree(home)
    subprocess.run(
        [sys.executable, "-c", "from backscroll.readers.temp_folder import Scratch; Scratch().close()"]
    )
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_started_ends_with_it(folder: Path, tmp_path: Path, temporary: Path) -> None:
    running = Running("--home", tmp_path / "home", *options(folder), "sync", SLOW="60")
    running.wait_for(temporary, "*/0.db")
    running.process.kill()
    running.end()  # which waits until nobody is left who could say something


def test_ctrl_c_ends_it_with_a_sentence_and_a_whole_archive(
    folder: Path, undisturbed: dict[str, Any], tmp_path: Path, temporary: Path
) -> None:
    home = tmp_path / "home"
    running = Running("--home", home, *options(folder), "sync", SLOW="1")
    running.wait_for(temporary, "*/1.db")
    running.signal(signal.SIGINT)
    code, out, err = running.end()
    assert (code, out) == (130, "")
    assert err.strip() == "Interrupted. Completed work is saved."
    assert list(temporary.iterdir()) == []
    with history_of(folder, home) as history:
        history.sync()
    assert told(folder, home, tmp_path) == undisturbed
