"""Names of the running processes."""

import os
import subprocess
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

_TIMEOUT_SECONDS = 10


def find_processes(names: Collection[str]) -> list[int]:
    """Return the ids of running processes whose program has one of these names, without case.

    This process is left out, but not those that started it: an editor may have started it as its MCP server
    or in its terminal. Raises `OSError` if processes cannot be listed.
    """
    wanted = {name.casefold() for name in names}
    own = os.getpid()
    return list(dict.fromkeys(pid for pid, name in _running() if name.casefold() in wanted and pid != own))


def running_name(pid: int) -> str | None:
    """Return the name of a running process; None if there is no such process."""
    return next((name for running, name in _running() if running == pid), None)


def may_use_folder(pid: int, folder: Path) -> bool:
    """Return whether a process has a file below a folder open. True if the system does not show it."""
    if sys.platform != "linux":
        return True
    root = os.path.realpath(folder) + os.sep
    try:
        descriptors = list(Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:
        return False  # it has ended
    except OSError:
        return True
    for descriptor in descriptors:
        with suppress(OSError):  # closed meanwhile
            if str(descriptor.readlink()).startswith(root):
                return True
    return False


def _running() -> list[tuple[int, str]]:
    if sys.platform == "linux":
        return _from_proc()
    command = ["tasklist", "/fo", "csv", "/nh"] if sys.platform == "win32" else ["ps", "-axo", "pid=,comm="]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        raise OSError(f"the running processes cannot be listed: {error}") from error
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [_from_tasklist(line) for line in lines if line] if sys.platform == "win32" else _from_ps(lines)


def _from_proc() -> list[tuple[int, str]]:
    """Return each process with its short name, and with the name of its program."""
    found: list[tuple[int, str]] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        pid = int(folder.name)
        with suppress(OSError):  # it has ended, or belongs to another user
            found.append((pid, (folder / "comm").read_text(errors="replace").strip()))
        with suppress(OSError):
            program = (folder / "cmdline").read_bytes().split(b"\0", 1)[0]
            found.append((pid, os.path.basename(os.fsdecode(program))))  # noqa: PTH119 - may be any text
    return list(dict.fromkeys(found))


def _from_ps(lines: list[str]) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for line in lines:
        pid, _, program = line.strip().partition(" ")
        if pid.isdecimal():
            found.append((int(pid), program.strip().rpartition("/")[2]))
    return found


def _from_tasklist(line: str) -> tuple[int, str]:
    name, pid, *_ = line.strip('"').split('","')
    return int(pid), name.removesuffix(".exe")
