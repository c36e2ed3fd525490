"""Temporary folders that do not outlive their process."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from backscroll.readers.temp_folder import TempFolder

HOLD = (
    "from backscroll.readers.temp_folder import TempFolder; s = TempFolder();"
    " print(s.path, flush=True); input()"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def held() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_its_owners_alone_and_gone_afterwards(temporary: Path) -> None:
    with TempFolder() as folder:
        assert folder.parent == temporary
        if os.name == "posix":
            assert folder.stat().st_mode & 0o077 == 0
        (folder / "copy").write_text("words")
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not() -> None:
    (dead, left), (alive, used) = held(), held()
    (left / "copy").write_text("words")
    (used / "copy").write_text("words")
    with TempFolder() as mine:
        assert left.exists()
        dead.send_signal(signal.SIGKILL)
        dead.communicate()
        with TempFolder():
            assert not left.exists()
            assert (used / "copy").exists()
            assert mine.exists()
    alive.communicate("\n")


def test_folders_of_others_are_left_alone(temporary: Path) -> None:
    (temporary / "backscroll-bench").mkdir()
    (temporary / "backscroll-scratch-new").mkdir()
    (temporary / "backscroll-scratch-file").write_text("not a folder")
    with TempFolder():
        pass
    assert len(list(temporary.iterdir())) == 3
