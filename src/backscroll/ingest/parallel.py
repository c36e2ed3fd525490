"""Read units in several processes. Each worker fills a shard, a small archive of its own.

Worker processes import this module, so it does not import the index itself.
"""

import gc
import os
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from sqlite3 import OperationalError
from threading import Thread, current_thread, main_thread
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct

from backscroll.archive.archive import Archive
from backscroll.archive.write.exclusions import Exclusions
from backscroll.index.documents import DocumentSpool
from backscroll.model.store import Unit
from backscroll.sources import named
from backscroll.sources.protocols import close, raw_rows

if TYPE_CHECKING:
    from concurrent.futures import Future

    from backscroll.sources import Source


BATCH_BYTES = 24 * 1024 * 1024
FIRST_BATCH_BYTES = 2 * 1024 * 1024  # the newest sessions are in the archive after a fraction of a second
MIN_BATCH_BYTES = 4 * 1024 * 1024  # near the end, so that all workers finish at the same time
MAX_BATCH_FRACTION = 8  # a batch is at most 1/8 of the remaining bytes
HEAD_BYTES = 128 * 1024 * 1024  # the newest units, which are read before any very large one
MAX_BATCH_UNITS = 400
LARGE_FILE_BYTES = 8 * 1024 * 1024  # memory is trimmed after a batch with such a file
MIN_PARALLEL_BYTES = 48 * 1024 * 1024  # less is read faster than processes start
GC_THRESHOLD = 10_000  # parsed values have no cycles; the default of 700 costs time
WORKER_NICENESS = 5  # the merging process and the user's programs come first
# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
DEFAULT_TRIM_BYTES = 128 * 1024
WORKER_TRIM_BYTES = 16 * 1024 * 1024  # a worker reads file after file and reuses the memory of the last one
MAX_ARENAS = 2


class Batch(Struct, frozen=True):
    """Units of one source that one worker reads together."""

    source: str
    units: tuple[Unit, ...]

    @property
    def estimated_bytes(self) -> int:
        return sum(unit.estimated_bytes for unit in self.units)


class Shard(Struct, frozen=True):
    """A batch that was read: an archive, and a file with documents for the index by fragment id."""

    batch: Batch
    archive: Path
    documents: Path
    frames: dict[int, list[tuple[int, int]]]


def batches(units: list[Unit]) -> list[Batch]:
    """Split units into batches, newest first; none if there is too little for several processes."""
    if sum(unit.estimated_bytes for unit in units) < MIN_PARALLEL_BYTES or (os.cpu_count() or 1) < 2:
        return []
    by_source: defaultdict[str, list[Unit]] = defaultdict(list)
    for unit in sorted(units, key=lambda unit: unit.modified_at, reverse=True):
        by_source[unit.source].append(unit)
    found = [batch for of_source in by_source.values() for batch in _split(of_source)]
    found.sort(key=lambda batch: batch.units[0].modified_at, reverse=True)
    return _large_after_head(found)


def _split(units: list[Unit]) -> Iterator[Batch]:
    """Split the units of one source into batches: small ones first and last, large ones in between."""
    done, remaining = 0, sum(unit.estimated_bytes for unit in units)
    batch: list[Unit] = []
    size = 0
    for unit in units:
        limit = min(BATCH_BYTES, max(MIN_BATCH_BYTES, remaining // MAX_BATCH_FRACTION))
        limit = min(limit, max(FIRST_BATCH_BYTES, done // 2))
        is_large = unit.estimated_bytes >= BATCH_BYTES
        if batch and (size >= limit or len(batch) >= MAX_BATCH_UNITS or is_large):
            yield Batch(batch[0].source, tuple(batch))
            done, remaining = done + size, remaining - size
            batch, size = [], 0
        batch.append(unit)
        size += unit.estimated_bytes
    if batch:
        yield Batch(batch[0].source, tuple(batch))


def _large_after_head(work: list[Batch]) -> list[Batch]:
    """Move batches with a very large unit behind the newest batches.

    A large unit keeps a worker busy for long: at the start it delays the newest sessions, and at the end all
    other workers wait for it.
    """
    large = [batch for batch in work if batch.units[0].estimated_bytes >= BATCH_BYTES]
    small = [batch for batch in work if batch.units[0].estimated_bytes < BATCH_BYTES]
    head_bytes = head_count = 0
    while head_count < len(small) and head_bytes < HEAD_BYTES:
        head_bytes += small[head_count].estimated_bytes
        head_count += 1
    return [*small[:head_count], *large, *small[head_count:]]


def read_batches(work: list[Batch], exclusions: Exclusions, folder: Path) -> Iterator[Shard]:
    """Read batches in parallel into files of a folder. The caller deletes the archive of each shard."""
    if not work:
        return
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, ProcessPoolExecutor, wait
    from multiprocessing import get_context

    _limit_free_memory()
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn"), initializer=_start_worker) as pool:
        empty = folder / "empty.db"
        waiting = list(enumerate(work))[::-1]
        running: dict[Future[Shard], int] = {}  # with the estimated bytes of each
        try:
            Archive(empty, is_shard=True).close()
            while waiting or running:
                # Queue enough work to keep the workers busy while the caller merges.
                while waiting and sum(running.values()) <= 2 * cores * BATCH_BYTES:
                    index, batch = waiting.pop()
                    with _sigint_blocked(), _without_main_module():
                        future = pool.submit(_read_batch, batch, exclusions, empty, folder / f"{index}.db")
                    running[future] = min(BATCH_BYTES, batch.estimated_bytes)
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                future = done.pop()
                del running[future]
                if not waiting and not running:
                    pool.shutdown()  # frees the memory of the workers before the last merge
                yield future.result()
        except (BrokenExecutor, OSError, OperationalError):
            # A worker was killed or the disk is full. The caller reads the rest in this process.
            return
        finally:
            with _sigint_ignored():
                pool.shutdown(cancel_futures=True)


@contextmanager
def _sigint_ignored() -> Iterator[None]:
    """Ignore a second Ctrl-C, which would leave the workers running and the shutdown waiting for them."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block Ctrl-C in processes that start now. The terminal sends it to the whole process group."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main_module() -> Iterator[None]:
    """Keep processes that start now from running the main script again.

    Workers do not need it, and a script without a main guard would repeat all its work in each of them.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _start_worker() -> None:
    """Initialize a worker: ignore Ctrl-C, and exit when the parent process ends."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(GC_THRESHOLD)
    _limit_free_memory(WORKER_TRIM_BYTES)
    if hasattr(os, "nice"):
        os.nice(WORKER_NICENESS)
    parent = parent_process()
    assert parent is not None

    def exit_with_parent() -> None:
        parent.join()
        os._exit(1)

    Thread(target=exit_with_parent, daemon=True).start()


@cache
def _source(name: str) -> "Source":
    """Return the source of this worker. Its caches serve all batches."""
    return named(name)


def _read_batch(batch: Batch, exclusions: Exclusions, empty: Path, path: Path) -> Shard:
    """Read a batch into a new shard, which starts as a copy of an empty one. Runs in a worker."""
    shutil.copyfile(empty, path)
    archive = Archive(path, exclusions=exclusions, is_shard=True)
    spool = DocumentSpool(path.with_suffix(".documents"))
    source = _source(batch.source)
    for unit in batch.units:
        archive.units.put(
            unit,
            source.platform,
            source.read(unit),
            event="created",
            keeps_file=source.keeps_file(unit),
            rows=raw_rows(source, unit),
            observer=spool,
        )
    close(source)
    frames = spool.close(archive.units.fragment_ids())
    archive.close()
    if any(unit.size > LARGE_FILE_BYTES for unit in batch.units):
        malloc_trim()
    return Shard(batch, path, path.with_suffix(".documents"), frames)


def _limit_free_memory(max_bytes: int = DEFAULT_TRIM_BYTES) -> None:
    """Limit the freed memory that this process keeps.

    Without a limit every thread of the index keeps its peak, which is half as much again for a large
    history. A limit that is too low costs time: returned pages are zeroed before they are used again.
    """
    mallopt = _libc_function("mallopt")
    for parameter, value in (
        (_M_ARENA_MAX, MAX_ARENAS),
        (_M_TRIM_THRESHOLD, max_bytes),
        (_M_MMAP_THRESHOLD, max_bytes),
    ):
        mallopt(parameter, value)


def malloc_trim() -> None:
    """Return free memory between used blocks. Takes a few milliseconds; index merges leave much of it."""
    _libc_function("malloc_trim")(0)


def _libc_function(name: str) -> Callable[..., object]:
    """Return a function of glibc; a function without effect on other systems."""
    if sys.platform == "linux":
        import ctypes  # start-up time

        try:
            function: Callable[..., object] = getattr(ctypes.CDLL(None), name)
        except (OSError, AttributeError):
            return _no_effect
        return function
    return _no_effect


def _no_effect(*_: int) -> None:
    return None
