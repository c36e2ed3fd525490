"""Memory of each process at the peak of a first sync: ``python -m benchmarks.sync_memory FOLDER``.

``FOLDER`` is a Claude Code home, generated or real. The table shows private pages by type: the heap, other
memory, mapped index files, program files. Sampling pauses the process, so the run time is not
representative, and the real peak may be slightly higher.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.benchmark_context import BACKSCROLL_COMMAND
from benchmarks.generated_histories import MB
from benchmarks.measurement import process_tree

SAMPLE_INTERVAL_SECONDS = 0.1
_MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)")
_PRIVATE = re.compile(r"Private_(?:Clean|Dirty): +(\d+) kB")
_TYPES = ("heap", "other memory", "index", "programs", "other files")

Sample = dict[str, Counter[str]]  # bytes by type, for each process


def main(root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="backscroll-bench-") as folder:
        options = ["--home", folder, "--root", f"claude-code={root}"]
        process = subprocess.Popen([*BACKSCROLL_COMMAND, *options, "sync"], stdout=subprocess.DEVNULL)
        start, peak_seconds, peak = time.monotonic(), 0.0, Sample()
        while process.poll() is None:
            sample = {name: _bytes_by_type(pid) for name, pid in _named_processes(process.pid)}
            if _total(sample) > _total(peak):
                peak_seconds, peak = time.monotonic() - start, sample
            time.sleep(SAMPLE_INTERVAL_SECONDS)
        run_seconds = time.monotonic() - start
        print(f"Peak: {_total(peak) / MB:.0f} MB after {peak_seconds:.0f} s. Run time: {run_seconds:.0f} s.")
        print(f"{'MB':<14}" + "".join(f"{name:>14}" for name in _TYPES))
        for name, sizes in peak.items():
            print(f"{name:<14}" + "".join(f"{sizes[type_] / MB:14.1f}" for type_ in _TYPES))


def _named_processes(pid: int) -> list[tuple[str, int]]:
    first, *workers = process_tree(pid)
    return [("sync", first), *((f"worker {index}", worker) for index, worker in enumerate(workers, start=1))]


def _bytes_by_type(pid: int) -> Counter[str]:
    sizes: Counter[str] = Counter()
    mapping_type = ""
    try:
        lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    except OSError:  # the process has exited
        return sizes
    for line in lines:
        if private := _PRIVATE.match(line):
            sizes[mapping_type] += int(private[1]) * 1024
        elif mapping := _MAPPING.match(line):
            mapping_type = _mapping_type(mapping[1])
    return sizes


def _mapping_type(name: str) -> str:
    if name == "[heap]":
        return "heap"
    if not name.startswith("/"):
        return "other memory"
    if "/index/" in name:
        return "index"
    return "programs" if ".so" in name or "/bin/" in name else "other files"


def _total(sample: Sample) -> int:
    return sum(sizes.total() for sizes in sample.values())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
