"""The machine that figures were taken on, in one paragraph."""

import os
import platform
import sqlite3
import sys
from importlib.metadata import version
from pathlib import Path

__all__ = ["machine"]


def machine() -> str:
    """Processor, memory, and the versions of what does the work."""
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{_field('/proc/cpuinfo', 'model name') or platform.machine()}, {cores} cores,"
        f" {_memory()}, {platform.system()} {platform.release().partition('-')[0]};"
        f" Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, tantivy {version('tantivy')},"
        f" msgspec {version('msgspec')}; load {load:.1f} when it began"
    )


def _memory() -> str:
    kilobytes = _field("/proc/meminfo", "MemTotal").split()
    return f"{int(kilobytes[0]) / 1e6:.0f} GB of memory" if kilobytes else "memory unknown"


def _field(path: str, name: str) -> str:
    """What a file of the system says of something, empty where there is no such file."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
