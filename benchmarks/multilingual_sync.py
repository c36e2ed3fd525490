"""First sync and unchanged sync of a history in several languages."""

from collections.abc import Iterator

from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.generated_histories import MB, folder_size
from benchmarks.measurement import fastest
from benchmarks.result_table import Result, duration_result

__all__ = ["measure"]

_RUNS = 7


def measure(context: BenchmarkContext) -> Iterator[Result]:
    if context.scale != "S":
        return
    multilingual = BenchmarkContext("M")
    size = folder_size(multilingual.root)
    run = multilingual.first_sync
    yield Result(
        key="multilingual sync",
        label=f"Multilingual history, first sync, {size / MB:,.0f} MB",
        value=size / MB / run.wall_seconds,
        unit="MB/s",
        target=70,
        target_ratio=2,
        higher_is_better=True,
        cpu_seconds=run.cpu_seconds,
    )
    yield Result(
        key="multilingual memory",
        label="Multilingual history, peak private memory",
        value=run.peak_bytes / MB,
        unit="MB",
        target=300,
    )
    yield Result(
        key="multilingual archive size",
        label="Multilingual history, archive and index size relative to the source",
        value=folder_size(multilingual.home) / size,
        unit="",
        target=0.4,
    )
    unchanged = fastest(multilingual.run_command("sync", accepted_exit_codes=(0, 3)) for _ in range(_RUNS))
    yield duration_result(
        "multilingual sync command",
        "Multilingual history, backscroll sync, without changes",
        unchanged.wall_seconds,
        cpu_seconds=unchanged.cpu_seconds,
        target_ratio=3,
    )
