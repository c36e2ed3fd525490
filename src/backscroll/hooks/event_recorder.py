"""Append an event of a hook to the spool. `backscroll_hook.py` is the program that runs this.

    python -I -S backscroll_hook.py SPOOL < event
    python -I -S backscroll_hook.py SPOOL EVENT FOLDER HEAD [SOURCE=DIR...]
    python -I -S backscroll_hook.py SPOOL --work [SOURCE=DIR...]

The second form records a commit. Then it becomes the process that links commits, as the third form does,
unless one is running already.

Uses the standard library only, and little of it. It takes 12 ms of CPU time, and 25 ms with an event of
6 MB. It prints nothing and sends nothing. The command line that runs it ignores its exit code; see
`shell_command`.

An event is recorded as it was received. The folder is private, and the next sync deletes the file.
`ingest/hook_payloads.py` removes what the archive does not keep.

Any number of processes append to ``events.jsonl``, each with one write per record. A sync renames the file
before it reads it. After the write, a record is repeated if the file was renamed in the meantime, because the
sync may have read it already. The id of the record identifies the repetition.
"""

from __future__ import annotations

import os
import sys
import time

Line = tuple[bytes, bytes, bytes]  # with its line breaks; written at once

ACTIVE_FILE = "events.jsonl"
MAX_FILE_BYTES = 4 * 1024 * 1024  # then the file is renamed and a new one begins
# Of renamed files: weeks of work without a sync. Then only commits are recorded, until the next sync.
MAX_SPOOL_BYTES = 1024 * 1024 * 1024
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024  # the rest is not read; such an event is unreadable
_ATTEMPTS = 5
WORK = "--work"
LOCK_FILE = "hooks.lock"  # beside the spool; held by the process that processes commits
_SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"  # set by Claude Code 2.1.325 for the commands that it runs


def main() -> None:
    """Append an event from standard input, or a commit from the arguments, to the spool."""
    spool, *commit = sys.argv[1:]
    if not commit:
        append(spool, event_line(sys.stdin.buffer.read(MAX_PAYLOAD_BYTES)), MAX_SPOOL_BYTES)
        return
    if commit[0] == WORK:
        start_worker(spool, commit[1:])
        return
    event, folder, head, *roots = commit
    if hasattr(os, "setsid") and os.getpid() != os.getpgrp():
        os.setsid()  # the end of the terminal does not end this process
    if append(spool, commit_line(event, folder, head)):
        start_worker(spool, roots)


def event_line(payload: bytes) -> Line:
    """Return the record of an event. Its payload is not parsed, so the line may be invalid JSON."""
    # Between tokens, a line break is the same as a space. Cursor writes a byte order mark on Windows.
    payload = payload.removeprefix(b"\xef\xbb\xbf").replace(b"\n", b" ").replace(b"\r", b" ")
    return _line(b"payload", payload)


def commit_line(event: str, folder: str, head: str) -> Line:
    """Return the record of a commit. ``head`` is the output of ``git rev-parse HEAD --git-common-dir``."""
    from _json import encode_basestring_ascii  # needed here only; `json` would double the time of a start

    sha, _, git_folder = head.strip("\n").partition("\n")
    commit = {
        "event": "post-rewrite" if event in ("amend", "rebase") else event,
        "folder": folder,
        "sha": sha,
        "git_folder": os.path.realpath(os.path.join(folder, git_folder)),
    }
    if session := os.environ.get(_SESSION_VARIABLE):
        commit["session_id"] = session
    members = [f'"{name}":{encode_basestring_ascii(value)}' for name, value in commit.items()]
    return _line(b"commit", f"{{{','.join(members)}}}".encode())


def _line(kind: bytes, value: bytes) -> Line:
    # A full disk can cut a record off. Each one starts with a line break, so that the next one is complete.
    id_, at = os.urandom(12).hex().encode(), time.time_ns() // 1_000_000
    return b'\n{"id":"%b","at":%d,"%b":' % (id_, at, kind), value, b"}\n"


def start_worker(spool: str, roots: list[str]) -> None:
    """Replace this process by the one that processes commits; return if it is running already."""
    try:
        import fcntl  # not on Windows, where the next sync processes the commits
    except ImportError:
        return
    home = os.path.dirname(spool)
    lock = os.open(os.path.join(home, LOCK_FILE), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # the running process reads the record
    os.set_inheritable(lock, True)  # the lock is held until that process exits
    os.nice(19)
    os.chdir(home)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    run = "from backscroll.history.commit_worker import main; main()"
    code = f"import sys; sys.path[0] = {package!r}; {run}"
    os.execv(sys.executable, [sys.executable, "-c", code, home, str(lock), *roots])


# The spool ----------------------------------------------------------------------------------------


def append(folder: str, line: Line, max_spool_bytes: int | None = None) -> bool:
    """Append a record to the spool. Return False if it could not be written, or if the spool is full.

    The folder is created if its parent exists: after the archive was deleted, nothing is written any more.
    """
    path = os.path.join(folder, ACTIVE_FILE)
    for _ in range(_ATTEMPTS):
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except FileNotFoundError:
            _create(folder)
            continue
        try:
            if os.fstat(file).st_size >= MAX_FILE_BYTES:
                if max_spool_bytes is not None and _sealed_bytes(folder) >= max_spool_bytes:
                    return False
                _seal(folder, path)
                continue
            if _write(file, line) == sum(map(len, line)) and _is_current(file, path):
                return True
        finally:
            os.close(file)
    return False


def _write(file: int, line: Line) -> int:
    if not hasattr(os, "writev"):  # Windows
        return os.write(file, b"".join(line))
    return os.writev(file, line)  # to join the parts takes 4 ms with an event of 6 MB


def _create(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:  # another process was faster
        return


def _sealed_bytes(folder: str) -> int:
    """Return the size of the renamed files. There are about 256 at most: less than a millisecond."""
    size = 0
    for entry in os.scandir(folder):
        try:
            size += entry.stat().st_size if entry.name != ACTIVE_FILE else 0
        except FileNotFoundError:  # a sync has just deleted it
            continue
    return size


def _seal(folder: str, path: str) -> None:
    """Rename the file, so that nothing more is added to it. The names sort by time."""
    try:
        os.rename(path, os.path.join(folder, f"sealed-{time.time_ns():020d}-{os.urandom(4).hex()}.jsonl"))
    except FileNotFoundError:  # another process was faster
        return


def _is_current(file: int, path: str) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False
