"""A process that syncs an archive and never ends."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLD_LOCK = """
import sys, time
from pathlib import Path
from backscroll.archive.sync_state import sync_lock
from backscroll.archive.sync_state import ProgressFile
archive = Path(sys.argv[1])
with sync_lock(archive, None):
    file = ProgressFile(archive, is_background=True)
    file._started -= 10  # long enough for an estimate
    file.step(30, 100)
    print("locked", flush=True)
    time.sleep(60)
"""

# Code for a background process that owns semaphores, as one with a pool of workers does. It writes the id
# of the process that frees them to a file.
SYNC_WITH_POOL = """
import sys, time
from multiprocessing import get_context, resource_tracker
from pathlib import Path
from backscroll.archive.sync_state import sync_lock
from backscroll.archive.sync_state import ProgressFile
home = Path(sys.argv[1])
queue = get_context("spawn").Queue()
(home / "tracker").write_text(str(resource_tracker._resource_tracker._pid))
with sync_lock(home / "archive.db", None):
    ProgressFile(home / "archive.db", is_background=True).step(30, 100)
    time.sleep(60)
"""


@contextmanager
def syncing_process(archive: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a process that holds the sync lock and reports 30 % after 10 seconds, as a background sync does."""
    command = [sys.executable, "-c", HOLD_LOCK, str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()
