"""Description of the machine that a benchmark ran on."""

import os
import platform
import sqlite3
import sys
from importlib.metadata import version
from pathlib import Path


def describe_system() -> str:
    """Return the CPU, the memory, the library versions and the load as one sentence."""
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{_proc_field('/proc/cpuinfo', 'model name') or platform.machine()}, {cores} cores,"
        f" {_memory()}, {platform.system()} {platform.release().partition('-')[0]};"
        f" Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, tantivy {version('tantivy')},"
        f" msgspec {version('msgspec')}; load {load:.1f} at the start"
    )


def _memory() -> str:
    kilobytes = _proc_field("/proc/meminfo", "MemTotal").split()
    return f"{int(kilobytes[0]) / 1e6:.0f} GB of memory" if kilobytes else "memory unknown"


def _proc_field(path: str, name: str) -> str:
    """Return a field of a file in /proc, empty on systems without the file."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
