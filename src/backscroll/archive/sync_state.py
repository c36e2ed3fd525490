"""State of a sync: lock, progress, the fingerprints it compares, and the work that the next one completes.

That work is index jobs, an incomplete sync and an unfinished erasure. Every command that syncs loads this
module, and nothing else of the write side if nothing has changed.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from backscroll.archive.connection import now_ms, read_only_error, transaction
from backscroll.model.sync import estimate_remaining_seconds
from backscroll.readers.file_lock import try_lock_connection

POLL_SECONDS = 0.05  # short enough for Ctrl-C to work while waiting
PROBE_SECONDS = 0.005  # `is_locked` of another process holds the lock for less than this
WRITE_INTERVAL_SECONDS = 0.2
MAX_SINGLE_FOLDER_QUERIES = 500  # above this, one query reads all units of the root
_CURRENT = (
    "select iif(key = '', path, path || char(0) || key), iif(needs_retry, '?', fingerprint) from unit"
    " where source = ? and root = ? and not is_gone"
)
_EXCLUDED_BEFORE = (
    "select iif(key = '', path, path || char(0) || key), '?' from excluded_unit join unit on id = unit_id"
    " where source = ? and root = ? and not is_gone and patterns_hash <> ?"
)


@contextmanager
def sync_lock(
    archive: Path, timeout: float | None, while_waiting: Callable[[], None] | None = None
) -> Iterator[bool]:
    """Hold the sync lock of an archive. Yield False if it is still taken after `timeout` seconds.

    A sync consists of many transactions with long pauses, so the archive's own locks are not enough.
    The lock is an exclusive SQLite transaction on a file in the same folder. The operating system releases
    it when the process exits.
    """
    deadline = time.monotonic() + timeout if timeout is not None else None
    path = archive.with_name("sync.lock")
    if not path.exists():
        try:
            path.touch(mode=0o600)
        except PermissionError as error:
            raise read_only_error(archive) from error
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as lock:
        while not (is_held := try_lock_connection(lock) or _try_again(lock)):
            if deadline is not None and time.monotonic() + POLL_SECONDS > deadline:
                break
            if while_waiting is not None:
                while_waiting()
            time.sleep(POLL_SECONDS)
        yield is_held


def _try_again(lock: sqlite3.Connection) -> bool:
    """Try once more, because another process may only have looked."""
    time.sleep(PROBE_SECONDS)
    return try_lock_connection(lock)


def is_locked(archive: Path) -> bool:
    """Return whether a process syncs the archive now."""
    with sync_lock(archive, 0.0) as is_held:
        return not is_held


class SyncProgress(NamedTuple):
    """Progress of a running sync."""

    pid: int
    is_background: bool  # a process of its own, which can be stopped
    elapsed_seconds: float = 0.0  # without the time in which the machine was suspended
    done: int = 0  # estimated bytes
    total: int = 0

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 0

    @property
    def remaining_seconds(self) -> float | None:
        """An estimate; None if it is too early for one."""
        return estimate_remaining_seconds(self.elapsed_seconds, self.done, self.total)


class ProgressFile:
    """The file ``sync.json`` in the folder of an archive. It exists while a long sync runs."""

    def __init__(self, archive: Path, *, is_background: bool = False) -> None:
        self._path = archive.with_name("sync.json")
        self._progress = SyncProgress(os.getpid(), is_background)
        self._started = time.monotonic()
        self._next_write = self._started + (0.0 if is_background else WRITE_INTERVAL_SECONDS)
        self._is_written = False

    def step(self, done: int, total: int) -> None:
        """Record progress, at most a few times per second. A sync that ends at once writes nothing."""
        now = time.monotonic()
        if now < self._next_write:
            return
        self._next_write = now + WRITE_INTERVAL_SECONDS
        import json  # start-up time: most syncs end before they write

        elapsed = now - self._started
        progress = self._progress._replace(elapsed_seconds=elapsed, done=done, total=total)
        temporary = self._path.with_name(f"sync.json.{os.getpid()}")
        with suppress(OSError):  # a full disk must not end the sync here
            temporary.write_text(json.dumps(progress), "ascii")
            temporary.replace(self._path)
            self._is_written = True

    def read(self) -> SyncProgress | None:
        """Return the progress of the process that syncs; None if there is none or it has just started."""
        import json  # start-up time, as above

        try:
            pid, is_background, elapsed, done, total = json.loads(self._path.read_bytes())
            return SyncProgress(int(pid), bool(is_background), float(elapsed), int(done), int(total))
        except (OSError, ValueError, TypeError):
            return None

    def delete(self) -> None:
        """Delete the file at the end of a sync, if this process has written it."""
        if self._is_written:
            self.delete_of(os.getpid())

    def delete_of(self, pid: int) -> None:
        """Delete the file if a process that has ended left it behind."""
        progress = self.read()
        if progress is not None and progress.pid == pid:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


class SyncState:
    """Whether the archive contains everything that the last sync found. False after a killed sync."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @property
    def is_complete(self) -> bool:
        """False before the first sync is complete, and while a long sync runs."""
        return bool(self._db.execute("select is_complete from sync_state").fetchone()[0])

    @property
    def session_count(self) -> int:
        """The number of sessions that can be listed."""
        return int(self._db.execute("select count(*) from conversations").fetchone()[0])

    @property
    def searchable_session_count(self) -> int:
        """The number of sessions that can be searched. Queued subagents are subtracted too."""
        (queued,) = self._db.execute("select count(*) from index_queue").fetchone()
        return max(self.session_count - int(queued), 0)

    def mark_incomplete(self) -> None:
        """Record that a long sync has started."""
        if self.is_complete:
            with transaction(self._db):
                self._db.execute("update sync_state set is_complete = 0")

    def mark_complete(self) -> None:
        """Record that everything was read and indexed. Writes nothing if that is recorded already."""
        if not self.is_complete:
            with transaction(self._db):
                self._db.execute("update sync_state set is_complete = 1, completed_at = ?", [now_ms()])


class Fingerprints:
    """Stored fingerprints of units and folders.

    `patterns_hash` is the hash of the current exclusion patterns. What was stored under other
    patterns counts as changed.
    """

    def __init__(self, db: sqlite3.Connection, patterns_hash: bytes) -> None:
        self._db = db
        self._patterns_hash = patterns_hash

    def units(self, source: str, root: Path, folders: Collection[str] | None = None) -> dict[str, str]:
        """Return the fingerprint of every current unit below a root, or in some folders, by path.

        A unit that is a database row is named by path, NUL and key. The fingerprint of a unit
        that must be read again is "?", which no source produces.
        """
        if folders is None:
            return self._units(source, root)
        if len(folders) <= MAX_SINGLE_FOLDER_QUERIES:
            found: dict[str, str] = {}
            for folder in folders:
                found |= self._units(source, root, folder)
            return found
        wanted = set(folders)
        every = self._units(source, root)
        return {name: value for name, value in every.items() if folder_of(name.partition("\0")[0]) in wanted}

    def _units(self, source: str, root: Path, folder: str | None = None) -> dict[str, str]:
        condition, bounds = "", []
        if folder is not None:
            condition = " and path > ? and path < ? and instr(substr(path, ?), ?) = 0"
            bounds = [folder, f"{folder}\U0010ffff", len(folder) + 1, os.sep]
        found = dict(self._db.execute(_CURRENT + condition, [source, str(root), *bounds]))
        excluded = [source, str(root), self._patterns_hash, *bounds]
        found.update(self._db.execute(_EXCLUDED_BEFORE + condition, excluded))
        return found

    def folders(self, source: str, root: Path) -> dict[str, bytes | None]:
        """Return the fingerprint of every folder with units, by path; None if its units must be compared."""
        return dict(
            self._db.execute(
                "select path, iif(patterns_hash = ?, fingerprint, null) from folder_fingerprint"
                " where source = ? and root = ?",
                [self._patterns_hash, source, str(root)],
            )
        )

    def save_folders(
        self, source: str, root: Path, *, changed: Mapping[str, bytes], gone: Iterable[str]
    ) -> None:
        """Store fingerprints of folders whose units are all known, and delete folders without units.

        If another process writes or the disk is full, nothing is stored and the next refresh compares again.
        """
        with suppress(sqlite3.OperationalError), _no_busy_timeout(self._db), transaction(self._db):
            self._db.executemany(
                "insert or replace into folder_fingerprint values (?, ?, ?, ?, ?)",
                [(source, str(root), path, value, self._patterns_hash) for path, value in changed.items()],
            )
            self._db.executemany(
                "delete from folder_fingerprint where source = ? and root = ? and path = ?",
                [(source, str(root), path) for path in gone],
            )


def folder_of(path: str) -> str:
    """Return the folder of a path, with the separator at its end."""
    return path[: path.rindex(os.sep) + 1]


@contextmanager
def _no_busy_timeout(db: sqlite3.Connection) -> Iterator[None]:
    (before,) = db.execute("pragma busy_timeout").fetchone()
    db.execute("pragma busy_timeout = 0")
    try:
        yield
    finally:
        db.execute(f"pragma busy_timeout = {before}")


class IndexJob(NamedTuple):
    """A session or subagent to index from a position on."""

    session_id: int  # conversations.number or subagent.id
    first_position: int
    revision: int  # changes when another process adds to the job


class IndexQueue:
    """Sessions and subagents that the index does not contain completely. `derive.session_rows` adds them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @property
    def is_pending(self) -> bool:
        return self._db.execute("select 1 from index_queue limit 1").fetchone() is not None

    def next_jobs(self, limit: int) -> list[IndexJob]:
        """Return up to `limit` jobs."""
        rows = self._db.execute(
            "select session_number, first_position, revision from index_queue limit ?", [limit]
        )
        return [IndexJob(*row) for row in rows]

    def mark_done(self, jobs: Iterable[IndexJob]) -> None:
        """Delete finished jobs, except those that another process has added to in the meantime."""
        with transaction(self._db):
            self._db.executemany(
                "delete from index_queue where session_number = ? and revision = ?",
                [(job.session_id, job.revision) for job in jobs],
            )

    def add_all(self) -> None:
        """Queue every session and subagent from the start."""
        with transaction(self._db):
            self._db.execute("update index_queue set first_position = 0, revision = revision + 1")
            self._db.execute(
                "insert or ignore into index_queue (session_number) select number from conversations"
                " union select id from subagent"
            )


class PendingErasure:
    """Marker file for an unfinished erasure, in the folder of the archive.

    `forget` deletes rows in one transaction. Afterwards the index and the free pages still contain text. The
    marker exists from before the transaction until both are clean. So the next sync can finish after a crash.
    """

    def __init__(self, archive: Path) -> None:
        self._marker = archive.with_name(f"{archive.name}-erase")

    def start(self) -> None:
        """Record that the index and the free pages must be cleaned."""
        self._marker.write_text("index\n", encoding="ascii")

    @property
    def is_pending(self) -> bool:
        return self._marker.exists()

    @property
    def is_index_pending(self) -> bool:
        """Whether the index may still contain forgotten text."""
        return self.is_pending and "index" in self._marker.read_text(encoding="ascii", errors="replace")

    def mark_index_done(self) -> None:
        """Record that the index is clean. Free pages may still contain text."""
        if self.is_pending:
            self._marker.write_text("free space\n", encoding="ascii")

    def finish(self) -> None:
        """Delete the marker."""
        self._marker.unlink(missing_ok=True)
