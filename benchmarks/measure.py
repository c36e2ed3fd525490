"""How measurements are taken: clocks, and the memory of a program with all its processes."""

import resource
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

__all__ = ["Ran", "Took", "best", "family", "fastest", "private_memory", "run", "share", "timed"]

_EVERY = 0.05  # seconds between two looks at the memory


class Took(Struct, frozen=True):
    """Seconds by the wall's clock and by the processor's, all threads together."""

    wall: float
    processor: float


class Ran(Struct, frozen=True):
    """A program that has ended: its time, the most private memory of all its processes, what it said."""

    wall: float
    processor: float
    memory: int
    dirty: int  # the part of it that the system cannot take back, as it can pages of a file
    said: bytes


T = TypeVar("T", Took, Ran)


def fastest(runs: Iterable[T]) -> T:
    """The shortest of several runs: the one that other programs disturbed least."""
    return min(runs, key=lambda one: one.wall)


def timed(work: Callable[[], object]) -> Took:
    """How long something takes, once."""
    start, processor = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - start, time.process_time() - processor)


def best(work: Callable[[], object], *, runs: int = 3) -> Took:
    """The shortest of several times that something is done."""
    return fastest(timed(work) for _ in range(runs))


def share(values: Sequence[float], part: float) -> float:
    """The value that this part of all stays below."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    memory: bool = False,
    accept: Sequence[int] = (0,),
) -> Ran:
    """Run a program to its end. Raises `RuntimeError` with what it said when it does not end well."""
    before, start = _children(), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    looker = _Looker(process.pid) if memory else None
    if looker is not None:
        looker.start()
    said, complaint = process.communicate()
    wall = time.perf_counter() - start
    if process.returncode not in accept:
        last = (complaint or said).decode("utf-8", "replace").strip()[-400:]
        raise RuntimeError(f"{' '.join(command[:2])} ended with {process.returncode}: {last}")
    peak, dirty = looker.end() if looker is not None else (0, 0)
    return Ran(wall, _children() - before, peak, dirty, said)


def private_memory(pid: int) -> tuple[int, int]:
    """Bytes that a process and its descendants share with nobody, and how many of them are dirty."""
    each = [_private(one) for one in family(pid)]
    return sum(memory for memory, _ in each), sum(dirty for _, dirty in each)


class _Looker(threading.Thread):
    """Looks at a program's memory again and again."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._memory, self._dirty, self._ended = pid, 0, 0, threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_EVERY):
            memory, dirty = private_memory(self._pid)
            self._memory, self._dirty = max(self._memory, memory), max(self._dirty, dirty)

    def end(self) -> tuple[int, int]:
        self._ended.set()
        self.join()
        return self._memory, self._dirty


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def family(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended meanwhile
        return
    for task in tasks:
        for child in _read(task / "children").split():
            yield from family(int(child))


def _private(pid: int) -> tuple[int, int]:
    lines = _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    kinds = {
        line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_")
    }
    dirty = kinds.get("Private_Dirty", 0)
    return kinds.get("Private_Clean", 0) + dirty, dirty


def _read(path: Path) -> str:
    """A file of the system about a process, empty when the process is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""
