"""Time from a record appended to a file until a search finds it, in process."""

import shutil
import time
from collections.abc import Callable, Iterator

from backscroll.archive.archive import Archive
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.index.store import Index
from backscroll.ingest.sync import read_changes
from backscroll.sources import named
from backscroll.stores.indexer import update
from backscroll.testing.claude_code import Transcript
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.generated_histories import CACHE_FOLDER
from benchmarks.measurement import percentile
from benchmarks.result_table import Result

_RUNS = 20


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure a sync of the one changed file, as `watch` does it, and a full sync."""
    root = CACHE_FOLDER / f"appended-{context.scale}"
    shutil.rmtree(root, ignore_errors=True)
    transcript = Transcript("10000000-0000-4000-8000-000000000000", seed=1).user("First words")
    path = transcript.write(root)
    with context.open_history(NamedRoot("claude-code", root)) as history:
        history.sync()
        archive = Archive(history.archive_path)
        index = Index(history.archive_path.with_name("index"))
        source = named("claude-code")

        def sync_file() -> None:
            read_changes(archive, [(source, root)], paths={str(path)})
            update(archive, index)

        def time_append(word: str, run_sync: Callable[[], object]) -> float:
            lines = transcript.user(word).lines()[path.stat().st_size :]
            with path.open("ab") as file:
                file.write(lines)
            start = time.perf_counter()
            run_sync()
            _require_match(history, word)
            return (time.perf_counter() - start) * 1000

        file_times = [time_append(f"zeppelin{run}", sync_file) for run in range(_RUNS)]
        full_times = [time_append(f"balloon{run}", history.sync) for run in range(_RUNS)]
        archive.close()
    yield Result(
        key="append",
        label="Appended record to searchable, sync of one file, p50",
        value=percentile(file_times, 0.5),
        unit="ms",
        target=50,
    )
    yield Result(
        key="append full sync",
        label="Appended record to searchable, full sync, p50",
        value=percentile(full_times, 0.5),
        unit="ms",
    )


def _require_match(history: History, word: str) -> None:
    if not history.search_sessions(word).data:
        raise RuntimeError(f"the appended word {word} was not found")
