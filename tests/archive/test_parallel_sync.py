"""Parallel readers, and readers that are killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backscroll.ingest import parallel
from tests.archive.synced_archive import SyncedArchive
from tests.builders.claude_code.bulk.history import write_history as write_claude_history


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("history")
    write_claude_history(root, sessions=60, seed=3, bytes_target=6_000_000)
    return root


def test_parallel_reading_gives_the_same_content(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = SyncedArchive("claude-code", root, tmp_path / "one")
    one.sync()
    monkeypatch.setattr(parallel, "MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(parallel, "BATCH_BYTES", 1_000_000)
    many = SyncedArchive("claude-code", root, tmp_path / "many")
    report = many.sync()
    assert report.new == report.units
    assert many.content() == one.content()
    assert many.sync().changed == 0


def test_a_script_without_a_main_guard_runs_once(root: Path, tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from backscroll.config import NamedRoot\n"
        "from backscroll.history.history import History\n"
        "from backscroll.ingest import parallel\n"
        "parallel.MIN_PARALLEL_BYTES, parallel.BATCH_BYTES = 0, 1_000_000\n"
        "home, root = map(Path, sys.argv[1:])\n"
        "with History(home=home, roots=[NamedRoot('claude-code', root)]) as own:\n"
        "    report = own.sync()\n"
        "    print(report.new == report.units > 0)\n"
    )
    command = [sys.executable, script, tmp_path / "home", root]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_a_sync_killed_at_any_moment_is_completed_by_the_next(root: Path, tmp_path: Path) -> None:
    undisturbed = SyncedArchive("claude-code", root, tmp_path / "undisturbed")
    undisturbed.sync()
    home = tmp_path / "killed"
    command = Path(sys.executable).with_name("backscroll")
    rng = random.Random(5)
    for _ in range(6):
        process = subprocess.Popen(
            [command, "--home", home, "--root", f"claude-code={root}", "sync"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ},
        )
        time.sleep(rng.uniform(0.05, 0.9))
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed = SyncedArchive("claude-code", root, home)
    killed.sync()
    assert killed.content() == undisturbed.content()
