"""Two syncs of the same history give the same archive, independent of the hash seed of Python."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from backscroll.testing.claude_code import Transcript


def session_numbers(home: Path, root: Path, hash_seed: str) -> list[tuple[str, int]]:
    arguments = ["--home", str(home), "--root", f"claude-code={root}", "sync"]
    subprocess.run(
        [sys.executable, "-c", "from backscroll.cli import main; main()", *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    )
    with closing(sqlite3.connect(home / "archive.db")) as db:
        return db.execute("select external_id, number from conversations order by number").fetchall()


def test_sessions_have_the_same_numbers_in_two_archives_of_one_history(tmp_path: Path) -> None:
    for seed in range(1, 9):
        Transcript(seed=seed).user(f"prompt {seed}").assistant("answer").write(tmp_path / "root")
    first = session_numbers(tmp_path / "first", tmp_path / "root", "1")
    assert len(first) == 8
    assert first == session_numbers(tmp_path / "second", tmp_path / "root", "2")
