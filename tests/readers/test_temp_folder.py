"""Temporary folders: private, removed at exit, and cleaned up after a killed process."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from backscroll.readers.temp_folder import TempFolder

HOLD_SCRIPT = (
    "from backscroll.readers.temp_folder import TempFolder; s = TempFolder();"
    " print(s.path, flush=True); input()"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def start_process_with_folder() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_temporary_folder_is_private_and_removed_afterwards(temporary: Path) -> None:
    with TempFolder() as folder:
        assert folder.parent == temporary
        if os.name == "posix":
            assert folder.stat().st_mode & 0o077 == 0
        (folder / "copy").write_text("words")
    assert list(temporary.iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_and_folders_in_use_stay() -> None:
    dead, abandoned = start_process_with_folder()
    alive, in_use = start_process_with_folder()
    (abandoned / "copy").write_text("words")
    (in_use / "copy").write_text("words")
    with TempFolder() as mine:
        assert abandoned.exists()
        dead.send_signal(signal.SIGKILL)
        dead.communicate()
        with TempFolder():
            assert not abandoned.exists()
            assert (in_use / "copy").exists()
            assert mine.exists()
    alive.communicate("\n")


def test_folders_of_other_programs_are_not_removed(temporary: Path) -> None:
    (temporary / "backscroll-bench").mkdir()
    (temporary / "backscroll-scratch-new").mkdir()
    (temporary / "backscroll-scratch-file").write_text("not a folder")
    with TempFolder():
        pass
    assert len(list(temporary.iterdir())) == 3


def test_a_folder_that_another_process_deletes_before_it_is_locked_is_created_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, paths = sqlite3.connect, list[Path]()

    def connect_late(path: Path, **options: Any) -> sqlite3.Connection:
        paths.append(path)
        if len(paths) == 1:
            shutil.rmtree(path.parent)
        return connect(path, **options)

    monkeypatch.setattr(sqlite3, "connect", connect_late)
    with TempFolder() as folder:
        assert [path.parent for path in paths][1:] == [folder]
        assert list(temporary.iterdir()) == [folder]
