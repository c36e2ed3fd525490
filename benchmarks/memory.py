"""What each process of a first sync holds at the peak of all: ``python -m benchmarks.memory FOLDER``.

``FOLDER`` is a Claude Code home, made or real. Counted are pages that a process shares with nobody, by what
they are pages of: the heap, other memory, mapped files of the index, programs. Looking at them takes a
moment, in which the process waits; so the times of such a run are worth nothing, and its peak may be missed
by a little.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.measure import family
from benchmarks.stage import BACKSCROLL

MB = 1_000_000
_EVERY = 0.1  # seconds between two looks
_MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)")
_PRIVATE = re.compile(r"Private_(?:Clean|Dirty): +(\d+) kB")
_KINDS = ("heap", "other memory", "index", "programs", "other files")

Held = dict[str, Counter[str]]  # bytes by kind, of every process


def main(root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="backscroll-bench-") as folder:
        places = ["--home", folder, "--root", f"claude-code={root}"]
        process = subprocess.Popen([*BACKSCROLL, *places, "sync"], stdout=subprocess.DEVNULL)
        start, at, most = time.monotonic(), 0.0, Held()
        while process.poll() is None:
            held = {name: _kinds(pid) for name, pid in _named(process.pid)}
            if _sum(held) > _sum(most):
                at, most = time.monotonic() - start, held
            time.sleep(_EVERY)
        print(
            f"{_sum(most) / MB:.0f} MB at most, {at:.0f} of {time.monotonic() - start:.0f} s after it began"
        )
        print(f"{'MB':<14}" + "".join(f"{kind:>14}" for kind in _KINDS))
        for name, kinds in most.items():
            print(f"{name:<14}" + "".join(f"{kinds[kind] / MB:14.1f}" for kind in _KINDS))


def _named(pid: int) -> list[tuple[str, int]]:
    first, *others = family(pid)
    return [("sync", first), *((f"beside it {place}", other) for place, other in enumerate(others, start=1))]


def _kinds(pid: int) -> Counter[str]:
    found: Counter[str] = Counter()
    kind = ""
    try:
        lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    except OSError:  # it has ended meanwhile
        return found
    for line in lines:
        if private := _PRIVATE.match(line):
            found[kind] += int(private[1]) * 1024
        elif mapping := _MAPPING.match(line):
            kind = _kind(mapping[1])
    return found


def _kind(name: str) -> str:
    if name == "[heap]":
        return "heap"
    if not name.startswith("/"):
        return "other memory"
    if "/index/" in name:
        return "index"
    return "programs" if ".so" in name or "/bin/" in name else "other files"


def _sum(held: Held) -> int:
    return sum(kinds.total() for kinds in held.values())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
