"""What each step of a first sync costs, in one process: ``python -m benchmarks.sync FOLDER``.

``FOLDER`` is a Claude Code home, made or real. Times are those of the processor, all threads together, per
megabyte of source. In a real sync the first four steps run in several processes at once, and the index is
written while they go on.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from backscroll.archive import Archive
from backscroll.index import Index
from backscroll.ingest.index_documents import DocumentSpool, SpooledDocuments
from backscroll.ingest.indexer import Indexer, update
from backscroll.ingest.parallel import keeps_file
from backscroll.sources import named

MB = 1_000_000


class Steps:
    """The steps of a sync of one folder, one after the other."""

    def __init__(self, root: Path, scratch: Path) -> None:
        self.source = named("claude-code")
        self.units = list(self.source.units(root))
        self.size = sum(unit.size for unit in self.units)
        self.scratch = scratch
        self.recorder: DocumentSpool | None = None

    def read(self) -> None:
        for unit in self.units:
            for _ in self.source.read(unit):
                pass

    def write(self, name: str, *, with_files: bool) -> None:
        archive = Archive(self.scratch / name, is_shard=True)
        for unit in self.units:
            archive.units.put(
                unit,
                self.source.platform,
                self.source.read(unit),
                event="created",
                keeps_file=with_files and keeps_file(unit),
                observer=self.recorder,
            )
        archive.close()


def main(root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="backscroll-bench-") as folder:
        scratch = Path(folder)
        steps = Steps(root, scratch)
        print(f"{len(steps.units):,} files, {steps.size / MB:,.0f} MB; ms of processor time per MB")

        def say(what: str, work: Callable[[], object], less: float = 0.0) -> float:
            start, wall = time.process_time(), time.perf_counter()
            work()
            cost = (time.process_time() - start) * 1000 / (steps.size / MB)
            seconds = time.perf_counter() - wall
            print(f"{what:<44} {cost - less:6.1f}   ({seconds:.1f} s)", flush=True)
            return cost

        read = say("read", steps.read)
        rows = say("rows", lambda: steps.write("rows.db", with_files=False), read)
        say("originals", lambda: steps.write("shard.db", with_files=True), rows)
        steps.recorder = DocumentSpool(scratch / "entries")
        say("entries for the index", lambda: steps.write("listened.db", with_files=False), rows)
        archive, index = Archive(scratch / "archive.db"), Index(scratch / "index")
        say("merge", lambda: archive.units.merge_shards([scratch / "shard.db"]))
        frames = steps.recorder.close(archive.units.fragment_ids())
        say("derive", archive.derive)
        ready = SpooledDocuments()
        ready.add(scratch / "entries", frames, 0)

        def catch_up() -> None:
            with Indexer(archive, index) as indexing:
                indexing.catch_up(ready)

        say("index, from entries", catch_up)
        index.rebuild()
        say("index, from the archive", lambda: update(archive, index))
        archive.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
