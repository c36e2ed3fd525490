"""The process that completes a long sync in the background.

Started by `BackgroundSync` with the arguments ``HOME SOURCE=DIR...``. It logs to ``sync.log`` in that
folder and can be killed at any time. Its priority is low, except in the first seconds: a command waits
for the newest sessions.
"""

import ctypes
import os
import platform
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing import active_children
from pathlib import Path

from backscroll.config import named_roots, this_machine
from backscroll.errors import BackscrollError
from backscroll.ingest.sync import sync
from backscroll.stores.stores import Stores

NORMAL_PRIORITY_SECONDS = 3.0
NICENESS = 10
_IOPRIO_SET_SYSCALLS = {"x86_64": 251, "aarch64": 30}
_IOPRIO_WHO_PROCESS = 1
_LOWEST_BEST_EFFORT = (2 << 13) | 7  # class "best effort", level 7


def main() -> int:
    """Sync the archive in the folder of the first argument from the roots in the others."""
    home, *roots = sys.argv[1:]
    machine = this_machine()
    stores = Stores(named_roots(roots, machine), Path(home), machine)
    _log("started")
    try:
        report = sync(stores, _Priority().step, is_background=True)
    except (BackscrollError, OSError) as error:
        _log(f"failed: {error}")
        return 1
    finally:
        stores.close()
    assert report is not None
    _log(f"complete; units read: {report.changed:,}")
    return 0


def _log(message: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {os.getpid()} {message}\n")
    sys.stderr.flush()


class _Priority:
    """Lowers the priority of this process and of its workers after the first seconds."""

    def __init__(self) -> None:
        self._normal_until = time.monotonic() + NORMAL_PRIORITY_SECONDS
        self._is_low = False

    def step(self, done: int, total: int) -> None:
        if self._is_low or time.monotonic() < self._normal_until:
            return
        self._is_low = True
        for pid in (0, *(child.pid for child in active_children() if child.pid is not None)):
            _lower_priority(pid)


def _lower_priority(pid: int) -> None:
    with suppress(OSError, AttributeError):  # not on Windows, where the process starts with a low priority
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
    number = _IOPRIO_SET_SYSCALLS.get(platform.machine()) if sys.platform == "linux" else None
    if number is not None:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(number, _IOPRIO_WHO_PROCESS, pid, _LOWEST_BEST_EFFORT)
