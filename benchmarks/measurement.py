"""Wall-clock time, CPU time and memory of functions and processes."""

import os
import resource
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

SAMPLE_INTERVAL_SECONDS = 0.05
_USER_TICKS = 11  # index in /proc/PID/stat after the name; system time follows


class Duration(Struct, frozen=True):
    """Wall-clock time and CPU time of all threads."""

    wall_seconds: float
    cpu_seconds: float


class ProcessRun(Struct, frozen=True):
    """Time, peak private memory and output of a finished process and its descendants."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    peak_dirty_bytes: int  # without clean file pages, which the system can reclaim
    stdout: bytes


T = TypeVar("T", Duration, ProcessRun)


def fastest(runs: Iterable[T]) -> T:
    """Return the run with the shortest wall-clock time, which other programs disturbed least."""
    return min(runs, key=lambda run: run.wall_seconds)


def time_once(work: Callable[[], object]) -> Duration:
    start, cpu_start = time.perf_counter(), time.process_time()
    work()
    return Duration(time.perf_counter() - start, time.process_time() - cpu_start)


def time_best(work: Callable[[], object], *, runs: int = 3) -> Duration:
    """Return the shortest duration of several runs."""
    return fastest(time_once(work) for _ in range(runs))


def percentile(values: Sequence[float], fraction: float) -> float:
    """Return the value at this fraction of the sorted values: 0.95 for the 95th percentile."""
    return sorted(values)[min(int(len(values) * fraction), len(values) - 1)]


def run_process(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    sample_memory: bool = False,
    accepted_exit_codes: Sequence[int] = (0,),
) -> ProcessRun:
    """Run a program to its end. Raise `RuntimeError` with its output when the exit code is not accepted."""
    cpu_start, start = _children_cpu_seconds(), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    sampler = _MemorySampler(process.pid) if sample_memory else None
    if sampler is not None:
        sampler.start()
    stdout, stderr = process.communicate()
    wall_seconds = time.perf_counter() - start
    if process.returncode not in accepted_exit_codes:
        output = (stderr or stdout).decode("utf-8", "replace").strip()[-400:]
        raise RuntimeError(f"{' '.join(command[:2])} exited with {process.returncode}: {output}")
    peak_bytes, peak_dirty_bytes = sampler.stop() if sampler is not None else (0, 0)
    return ProcessRun(wall_seconds, _children_cpu_seconds() - cpu_start, peak_bytes, peak_dirty_bytes, stdout)


def private_memory(pid: int) -> tuple[int, int]:
    """Return the private bytes of a process and its descendants, and how many of them are dirty."""
    sizes = [_private_bytes(process) for process in process_tree(pid)]
    return sum(private for private, _ in sizes), sum(dirty for _, dirty in sizes)


class _MemorySampler(threading.Thread):
    """Background thread that records the peak memory of a process tree."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._peak, self._peak_dirty, self._stopped = pid, 0, 0, threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(SAMPLE_INTERVAL_SECONDS):
            private, dirty = private_memory(self._pid)
            self._peak, self._peak_dirty = max(self._peak, private), max(self._peak_dirty, dirty)

    def stop(self) -> tuple[int, int]:
        self._stopped.set()
        self.join()
        return self._peak, self._peak_dirty


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def process_tree(pid: int) -> Iterator[int]:
    """Yield the ids of a process and its descendants."""
    yield pid
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # the process has exited
        return
    for task in tasks:
        for child in _read_proc_file(task / "children").split():
            yield from process_tree(int(child))


def anonymous_memory(pid: int) -> int:
    """Return the bytes of a process and its descendants without file pages. Shared pages count once."""
    return sum(_memory_sizes(process).get("Pss_Anon", 0) for process in process_tree(pid))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its descendants that are running."""
    ticks = 0
    for process in process_tree(pid):
        fields = _read_proc_file(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()
        ticks += sum(map(int, fields[_USER_TICKS : _USER_TICKS + 2]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _private_bytes(pid: int) -> tuple[int, int]:
    sizes = _memory_sizes(pid)
    dirty = sizes.get("Private_Dirty", 0)
    return sizes.get("Private_Clean", 0) + dirty, dirty


def _memory_sizes(pid: int) -> dict[str, int]:
    lines = _read_proc_file(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    return {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines[1:]}


def _read_proc_file(path: Path) -> str:
    """Return the content of a file in /proc, empty when the process has exited."""
    try:
        return path.read_text()
    except OSError:
        return ""
