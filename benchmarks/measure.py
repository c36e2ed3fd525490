"""How measurements are taken: best of several runs, memory of a process of its own."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["best", "peak_private_memory"]


def best(work: Callable[[], object], *, runs: int = 3) -> float:
    """The shortest of several runs in seconds: the one that other programs disturbed least."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_private_memory(code: str) -> int:
    """The most private memory, in bytes, that a Python process needs for this code."""
    process = subprocess.Popen([sys.executable, "-c", code])
    rollup = Path(f"/proc/{process.pid}/smaps_rollup")
    peak = 0
    while process.poll() is None:
        try:
            lines = rollup.read_text().splitlines()
        except OSError:
            break
        peak = max(peak, sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024)
        time.sleep(0.005)
    if process.wait() != 0:
        raise RuntimeError("the measured process failed")
    return peak
