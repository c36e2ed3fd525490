"""A process that syncs an archive and never ends."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["syncing_process"]

HOLD_LOCK = """
import sys, time
from pathlib import Path
from backscroll.archive.sync_lock import sync_lock
from backscroll.archive.sync_progress import ProgressFile
archive = Path(sys.argv[1])
with sync_lock(archive, None):
    file = ProgressFile(archive, is_background=True)
    file.step(30, 100)
    print("locked", flush=True)
    time.sleep(60)
"""


@contextmanager
def syncing_process(archive: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a process that holds the sync lock and reports 30 %, as a background sync does."""
    command = [sys.executable, "-c", HOLD_LOCK, str(archive)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()
