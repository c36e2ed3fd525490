"""Running processes: their names, their command lines, and the files that they have open."""

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
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


def files_open_for_writing(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield each process with each file below a folder that it has open for writing; none without ``/proc``.

    This process and those of other users are left out. A process that only reads a file does not count: it
    can be a search, or another Backscroll.
    """
    root = os.path.realpath(folder) + os.sep
    own = str(os.getpid())
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == own:
            continue
        try:
            descriptors = list((process / "fd").iterdir())
        except OSError:  # it has ended, or belongs to another user
            continue
        for descriptor in descriptors:
            with suppress(OSError):  # closed meanwhile
                path = str(descriptor.readlink())
                if path.startswith(root) and _is_writable(process / "fdinfo" / descriptor.name):
                    yield int(process.name), Path(path)


def _is_writable(info: Path) -> bool:
    flags = next(line for line in info.read_text().splitlines() if line.startswith("flags:"))
    return bool(int(flags.split()[1], 8) & os.O_ACCMODE)


def command_lines() -> Iterator[tuple[int, list[str]]]:
    """Yield each process with its command line, as far as the system shows them. This process is left out.

    macOS shows the arguments without their limits, so that they are split at spaces.
    """
    own = os.getpid()
    if sys.platform == "linux":
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                arguments = path.read_bytes().rstrip(b"\0").split(b"\0")
                if int(path.parent.name) != own:
                    yield int(path.parent.name), [os.fsdecode(one) for one in arguments]
    elif sys.platform != "win32":
        for pid, line in _from_ps(_output_of("ps", "-axo", "pid=,command=")):
            if pid != own:
                yield pid, line.split()


def _running() -> list[tuple[int, str]]:
    if sys.platform == "linux":
        return _from_proc()
    if sys.platform == "win32":
        return [_from_tasklist(line) for line in _output_of("tasklist", "/fo", "csv", "/nh") if line]
    lines = _output_of("ps", "-axo", "pid=,comm=")
    return [(pid, program.rpartition("/")[2]) for pid, program in _from_ps(lines)]


def _output_of(*command: str) -> list[str]:
    """Return the lines that a command prints. Raises `OSError`."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        raise OSError(f"the running processes cannot be listed: {error}") from error
    return done.stdout.decode("utf-8", "replace").splitlines()


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
            found.append((int(pid), program.strip()))
    return found


def _from_tasklist(line: str) -> tuple[int, str]:
    name, pid, *_ = line.strip('"').split('","')
    return int(pid), name.removesuffix(".exe")
