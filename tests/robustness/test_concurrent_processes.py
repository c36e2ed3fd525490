"""Several processes use one archive: one writes at a time, and readers do not wait."""

import json
import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import COMMAND, Result, backscroll
from tests.robustness.archived_history import archive_content, history_of, options
from tests.robustness.child_process import ChildProcess

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs process groups and signals"),
    pytest.mark.usefixtures("temporary"),
]


def test_two_concurrent_syncs_read_everything_once(
    folder: Path, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    both = [ChildProcess("--home", home, *options(folder), "sync", "--json", SLOW="0.1") for _ in range(2)]
    ended = [running.end() for running in both]
    assert sorted(code for code, _, _ in ended) == [0, 3], ended
    units = undisturbed["status"]["units"]
    assert sorted(json.loads(out)["new"] for _, out, _ in ended) == [0, units]
    assert archive_content(folder, home, tmp_path) == undisturbed


def test_a_reader_does_not_wait_for_another_process_that_syncs(
    folder: Path, tmp_path: Path, temporary: Path
) -> None:
    home = tmp_path / "home"
    running = ChildProcess("--home", home, *options(folder), "sync", SLOW="60")
    running.wait_for(temporary, "*/1.db")
    try:
        for arguments in (["list"], ["search", "ferry"], ["show", "1"], ["archive", "status"]):
            no_wait = ["--no-wait"] if arguments[0] != "archive" else []
            ran = backscroll("--home", home, *options(folder), *arguments, *no_wait)
            assert running.process.poll() is None
            assert "Traceback" not in ran.err
            if arguments[0] in ("list", "search"):
                assert ran.code == 0
                assert "Results are incomplete" in ran.err
    finally:
        running.signal(signal.SIGKILL)
        running.end()


def test_a_sync_is_complete_despite_a_long_read_transaction(
    folder: Path, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with history_of(folder, home) as history:
        history.list_sessions()
    with closing(sqlite3.connect(home / "archive.db", isolation_level=None)) as reader:
        reader.execute("begin")
        assert reader.execute("select count(*) from conversations").fetchone() == (0,)
        code, _, err = ChildProcess("--home", home, *options(folder), "sync").end()
        assert (code, err) == (3, "")
        assert reader.execute("select count(*) from conversations").fetchone() == (0,)
        reader.execute("rollback")
    assert archive_content(folder, home, tmp_path) == undisturbed


def test_a_sync_concurrent_with_a_watch_loses_nothing(tmp_path: Path) -> None:
    root, home = tmp_path / "claude", tmp_path / "home"
    first = Transcript(seed=1).user("the first word")
    first.write(root)
    watch = subprocess.Popen(
        [COMMAND, "--home", home, "--root", f"claude-code={root}", "watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watch.stderr is not None
        assert "Watching" in watch.stderr.readline()
        for number in range(2, 8):
            Transcript(seed=number).user(f"the word {number}").write(root)
            assert _run(root, home, "sync").code == 0
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            ran = _run(root, home, "search", "word", "--json")
            if ran.code == 0 and json.loads(ran.out)["pagination"]["total"] == 7:
                break
        else:
            pytest.fail(ran.out + ran.err)
    finally:
        watch.send_signal(signal.SIGINT)
        _, err = watch.communicate(timeout=30)
    assert "Traceback" not in err
    assert _run(root, home, "archive", "verify").code == 0


def _run(root: Path, home: Path, *arguments: str) -> Result:
    return backscroll("--home", home, "--root", f"claude-code={root}", *arguments)
