"""The process that links commits after the git hook has reported them.

Started by `hooks/backscroll_hook.py` with the arguments ``HOME LOCK [SOURCE=DIR...]``. LOCK is the file
descriptor of a lock that the process holds while it runs. Its priority is low, and it waits until no more
commits are made.
"""

import fcntl
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from backscroll.config import named_roots, this_machine
from backscroll.errors import BackscrollError
from backscroll.history.history import History

QUIET_SECONDS = 2.0  # without a new record, before the work starts
MAX_WAIT_SECONDS = 60.0
MAX_LOG_BYTES = 64 * 1024
_POLL_SECONDS = 0.1


def main() -> None:
    """Process all reported commits, then exit. Commits that are reported meanwhile are included."""
    home, lock, *roots = sys.argv[1:]
    _redirect_errors(Path(home))
    spool = Path(home, "spool")
    try:
        while True:
            _wait_until_quiet(spool)
            _process(Path(home), roots)
            fcntl.flock(int(lock), fcntl.LOCK_UN)
            # A hook that ran just before the lock was released has started no other process.
            if not _has_commits(spool) or not _try_lock(int(lock)):
                return
    except (BackscrollError, OSError) as error:
        sys.stderr.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {os.getpid()} failed: {error}\n")


def _process(home: Path, roots: list[str]) -> None:
    machine = this_machine()
    with History(home=home, roots=named_roots(roots, machine), machine=machine) as history:
        history.sync()
        history.hooks.process_commits()


def _wait_until_quiet(spool: Path) -> None:
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            age = time.time() - (spool / "events.jsonl").stat().st_mtime
        except OSError:
            return
        if age >= QUIET_SECONDS:
            return
        time.sleep(_POLL_SECONDS)


def _has_commits(spool: Path) -> bool:
    try:
        with (spool / "events.jsonl").open("rb") as lines:
            return any(b'"commit":{' in line[:100] for line in lines)
    except OSError:
        return False


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _redirect_errors(home: Path) -> None:
    """Write errors to a log beside the archive, which starts again when it is large."""
    path = home / "hooks.log"
    if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
        path.unlink()
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 2)
    os.close(log)
