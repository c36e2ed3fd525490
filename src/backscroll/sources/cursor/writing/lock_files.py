"""Lock files of a running editor. They also show an editor with another name, or on another machine."""

import platform
import sys
from contextlib import suppress
from pathlib import Path

from backscroll.model.safekeeping.transfer import BlockingProcess
from backscroll.readers.processes import may_use_folder, running_name

__all__ = ["lock_holders", "running_reason"]

_PID_FILE = "code.lock"
_SINGLETON_LINK = "SingletonLock"  # points to "<host>-<process id>"


def lock_holders(root: Path) -> list[BlockingProcess]:
    """Return the editor that holds a lock file of a user-data folder. A crash leaves the files behind."""
    for pid in _local_pids(root):
        if _is_editor(pid, root):
            return [BlockingProcess(pid, running_reason(pid))]
    host, _ = _singleton(root)
    if host and host != platform.node():
        return [
            BlockingProcess(
                None,
                f"Cursor is running on {host}. Close it there and try again."
                f" If it is not running, delete {root / _SINGLETON_LINK}.",
            )
        ]
    return []


def running_reason(pid: int) -> str:
    """Return a sentence with the next step."""
    return f"Cursor is running (process {pid}). Close all its windows and try again."


def _is_editor(pid: int, root: Path) -> bool:
    """Return whether a process is the editor. After a crash, another one may have its process id."""
    name = running_name(pid)
    if name is None or not may_use_folder(pid, root):
        return False
    return sys.platform == "linux" or "cursor" in name.casefold()


def _local_pids(root: Path) -> list[int]:
    pids = []
    with suppress(OSError, ValueError):
        pids.append(int((root / _PID_FILE).read_text().strip()))
    host, pid = _singleton(root)
    if pid is not None and host == platform.node():
        pids.append(pid)
    return pids


def _singleton(root: Path) -> tuple[str, int | None]:
    with suppress(OSError, ValueError):
        host, _, pid = str((root / _SINGLETON_LINK).readlink()).rpartition("-")
        return host, int(pid)
    return "", None
