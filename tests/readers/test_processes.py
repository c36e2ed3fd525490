"""Running processes are found by the name of their program."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backscroll.readers.processes import find_processes, may_use_folder


@pytest.mark.skipif(sys.platform != "linux", reason="copies a Linux program")
def test_a_running_program_is_found_by_its_name(tmp_path: Path) -> None:
    program = tmp_path / "Cursor"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as process:
        try:
            # The kernel sets the name of a process shortly after `exec` has let its parent go on.
            deadline = time.monotonic() + 10
            while process.pid not in find_processes(["cursor"]):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert process.pid not in find_processes(["cursor-agent"])
        finally:
            process.kill()
    assert process.pid not in find_processes(["cursor"])


def test_this_process_is_left_out() -> None:
    names = [Path(sys.executable).name, "pytest", "python", "python3"]
    assert os.getpid() not in find_processes(names)


@pytest.mark.skipif(sys.platform != "linux", reason="copies a Linux program")
def test_the_program_that_started_this_process_is_found(tmp_path: Path) -> None:
    """Cursor starts MCP servers, and commands in its terminal."""
    shell = tmp_path / "Cursor"
    shutil.copy("/bin/sh", shell)
    program = "from backscroll.readers.processes import find_processes; print(*find_processes(['Cursor']))"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}; true"
    with subprocess.Popen([shell, "-c", command], stdout=subprocess.PIPE, text=True) as process:
        output, _ = process.communicate(timeout=60)
    assert str(process.pid) in output.split()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_uses_a_folder_if_it_has_a_file_below_it_open(tmp_path: Path) -> None:
    used, other = tmp_path / "used", tmp_path / "other"
    used.mkdir()
    other.mkdir()
    with (used / "file").open("w") as file:
        assert may_use_folder(os.getpid(), used)
        assert not may_use_folder(os.getpid(), other)
        assert file.writable()
    assert not may_use_folder(os.getpid(), used)
