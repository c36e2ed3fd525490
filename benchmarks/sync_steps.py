"""CPU time of each step of a first sync, in one process: ``python -m benchmarks.sync_steps FOLDER``.

``FOLDER`` is a Claude Code home, generated or real. Times are CPU milliseconds of all threads per megabyte
of source. In a normal sync the first four steps run in several worker processes. Indexing runs in parallel.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from backscroll.archive.archive import Archive
from backscroll.index.documents import DocumentSpool, SpooledDocuments
from backscroll.index.store import Index
from backscroll.sources import named
from backscroll.stores.indexer import Indexer, update
from benchmarks.generated_histories import MB


class SyncSteps:
    """Reading and writing of one folder as separate steps."""

    def __init__(self, root: Path, scratch: Path) -> None:
        self.source = named("claude-code")
        self.units = list(self.source.units(root))
        self.size = sum(unit.size for unit in self.units)
        self.scratch = scratch
        self.spool: DocumentSpool | None = None

    def parse(self) -> None:
        for unit in self.units:
            for _ in self.source.read(unit):
                pass

    def write(self, name: str, *, with_originals: bool) -> None:
        archive = Archive(self.scratch / name, is_shard=True)
        for unit in self.units:
            archive.units.put(
                unit,
                self.source.platform,
                self.source.read(unit),
                event="created",
                keeps_file=with_originals and self.source.keeps_file(unit),
                observer=self.spool,
            )
        archive.close()


def main(root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="backscroll-bench-") as folder:
        scratch = Path(folder)
        steps = SyncSteps(root, scratch)
        print(f"{len(steps.units):,} files, {steps.size / MB:,.0f} MB; CPU ms per MB")

        def print_cost(label: str, work: Callable[[], object], baseline: float = 0.0) -> float:
            """Print the cost of a step without that of the steps it repeats; return the full cost."""
            cpu_start, start = time.process_time(), time.perf_counter()
            work()
            cost = (time.process_time() - cpu_start) * 1000 / (steps.size / MB)
            wall_seconds = time.perf_counter() - start
            print(f"{label:<44} {cost - baseline:6.1f}   ({wall_seconds:.1f} s)", flush=True)
            return cost

        parsing = print_cost("parse", steps.parse)
        rows = print_cost("write rows", lambda: steps.write("rows.db", with_originals=False), parsing)
        print_cost("store originals", lambda: steps.write("shard.db", with_originals=True), rows)
        steps.spool = DocumentSpool(scratch / "documents")
        print_cost("spool index documents", lambda: steps.write("spooled.db", with_originals=False), rows)
        archive, index = Archive(scratch / "archive.db"), Index(scratch / "index")
        print_cost("merge shards", lambda: archive.units.merge_shards([scratch / "shard.db"]))
        frames = steps.spool.close(archive.units.fragment_ids())
        print_cost("derive", archive.derive)
        documents = SpooledDocuments()
        documents.add(scratch / "documents", frames, 0)

        def index_spooled() -> None:
            with Indexer(archive, index) as indexer:
                indexer.catch_up(documents)

        print_cost("index spooled documents", index_spooled)
        index.rebuild()
        print_cost("index from the archive", lambda: update(archive, index))
        archive.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
