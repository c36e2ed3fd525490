"""Reading on all cores: each process fills a small archive of its own, and one takes them in."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from sqlite3 import OperationalError
from threading import Thread, current_thread, main_thread
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct

from backscroll.archive import Archive
from backscroll.archive.write.exclusions import Exclusions
from backscroll.ingest.malloc import MUCH, give_back_freed_memory, give_back_now
from backscroll.model import Unit
from backscroll.sources import named
from backscroll.sources.protocols import close, raw_rows

if TYPE_CHECKING:
    from concurrent.futures import Future

    from backscroll.sources import Source

__all__ = ["Batch", "Shard", "batches", "keeps_file", "read_batches"]

_BATCH = 24 * 1024 * 1024  # bytes that one process reads before it hands over
_LEAST = 4 * 1024 * 1024  # towards the end less, so that all have something to do until it is reached
_PARTS = 8  # of what is left, that one batch is at most
_MOST_UNITS = 400
_LARGE = 8 * 1024 * 1024  # bytes of a file that takes more memory than most
_ROW = 8 * 1024  # bytes of a database's row, with the blobs that belong to it
_WORTH_IT = 48 * 1024 * 1024  # less than this is read faster than processes start
_CONTAINERS = 10_000  # new ones before circles are looked for: what is read has none
_KINDNESS = 5  # by which readers step back: for the one who takes in what they have read, and for people
_LINES_OR_TEXT = (".jsonl", ".txt")
_FILES = frozenset({"session", "agent", "prompts", "transcript", "journal", "other"})


class Batch(Struct, frozen=True):
    """Units of one source that are read together."""

    source: str
    units: tuple[Unit, ...]

    @property
    def size(self) -> int:
        return sum(unit.size for unit in self.units)


def keeps_file(unit: Unit) -> bool:
    """Whether a unit is a whole file, to be kept byte for byte."""
    return not unit.key and unit.kind in _FILES and unit.path.endswith(_LINES_OR_TEXT)


def batches(units: list[Unit]) -> list[Batch]:
    """Units in batches of a size worth handing over, neighbours together; none when there is too little."""
    left = sum(map(_weight, units))
    if left < _WORTH_IT or (os.cpu_count() or 1) < 2:
        return []
    found: list[Batch] = []
    now: list[Unit] = []
    size, most = 0, _BATCH
    # Whoever begins a large one when the others are nearly done is waited for.
    for unit in sorted(units, key=lambda unit: _weight(unit) < _BATCH):
        if now and (unit.source != now[0].source or size >= most or len(now) >= _MOST_UNITS):
            found.append(Batch(now[0].source, tuple(now)))
            now, size = [], 0
            most = min(_BATCH, max(_LEAST, left // _PARTS))
        now.append(unit)
        size += _weight(unit)
        left -= _weight(unit)
    if now:
        found.append(Batch(now[0].source, tuple(now)))
    return found


def _weight(unit: Unit) -> int:
    """About how many bytes there are to read; of one session in a database only the rows are counted."""
    return unit.size * _ROW if unit.key else unit.size


class Shard(Struct, frozen=True):
    """A batch that was read: an archive of its own, and a file with entries for the index, by account."""

    batch: Batch
    archive: Path
    entries: Path
    frames: dict[int, list[tuple[int, int]]]


def read_batches(work: list[Batch], exclusions: Exclusions, folder: Path) -> Iterator[Shard]:
    """Read batches side by side, into files in a folder; whoever takes one in removes its archive."""
    if not work:
        return
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, ProcessPoolExecutor, wait
    from multiprocessing import get_context

    give_back_freed_memory()
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn"), initializer=_serve) as pool:
        empty = folder / "empty.db"
        waiting = list(enumerate(work))[::-1]
        running: dict[Future[Shard], int] = {}  # with about how much each reads
        try:
            Archive(empty, is_shard=True).close()
            while waiting or running:
                # Enough to go on with while the one who takes them in is busy with something else.
                while waiting and sum(running.values()) <= 2 * cores * _BATCH:
                    number, batch = waiting.pop()
                    with _undisturbed(), _by_themselves():
                        future = pool.submit(_read, batch, exclusions, empty, folder / f"{number}.db")
                    running[future] = min(_BATCH, sum(map(_weight, batch.units)))
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                future = done.pop()
                del running[future]
                if not waiting and not running:
                    pool.shutdown()  # so that their memory is free for what comes after
                yield future.result()
        except (BrokenExecutor, OSError, OperationalError):
            # A process may be killed, and a temporary folder have no room; what is left is read in this one.
            return
        finally:
            with _deaf():
                pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C once more would leave those who read without an end, and whoever waits for that with them."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C goes to every process of the terminal; those that start meanwhile never hear it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _by_themselves() -> Iterator[None]:
    """Processes that start meanwhile do not run this program's script once more.

    They need nothing of it, and a script without a main guard would do all of its work again in each.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _serve() -> None:
    """In a process of its own, first of all: leave Ctrl-C to the one that started it, and end with it."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(_CONTAINERS)
    give_back_freed_memory(MUCH)
    if hasattr(os, "nice"):
        os.nice(_KINDNESS)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    Thread(target=follow, daemon=True).start()


@cache
def _source(name: str) -> "Source":
    """In a process of its own: what was learned of a tool's folder serves the next batch, too."""
    return named(name)


def _read(batch: Batch, exclusions: Exclusions, empty: Path, path: Path) -> Shard:
    """In a process of its own: read a batch into a new archive, a copy of an empty one."""
    import shutil

    from backscroll.ingest.index_documents import Recorder

    shutil.copyfile(empty, path)
    archive = Archive(path, exclusions=exclusions, is_shard=True)
    recorder = Recorder(path.with_suffix(".entries"))
    source = _source(batch.source)
    for unit in batch.units:
        archive.units.put(
            unit,
            source.platform,
            source.read(unit),
            event="created",
            keeps_file=keeps_file(unit),
            rows=raw_rows(source, unit),
            observer=recorder,
        )
    close(source)
    frames = recorder.close(archive.units.fragment_ids())
    archive.close()
    if any(unit.size > _LARGE for unit in batch.units):
        give_back_now()  # most batches need far less
    return Shard(batch, path, path.with_suffix(".entries"), frames)
