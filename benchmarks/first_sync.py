"""First sync: throughput, peak memory and archive size."""

from collections.abc import Iterator

from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.generated_histories import MB, folder_size
from benchmarks.result_table import Result

__all__ = ["measure"]


def measure(context: BenchmarkContext) -> Iterator[Result]:
    size = folder_size(context.root)
    run = context.first_sync
    yield Result(
        key="sync",
        label=f"First sync, {size / MB:,.0f} MB",
        value=size / MB / run.wall_seconds,
        unit="MB/s",
        target=100,
        target_ratio=3.5,
        higher_is_better=True,
        cpu_seconds=run.cpu_seconds,
    )
    yield Result(
        key="memory",
        label="First sync, peak private memory",
        value=run.peak_bytes / MB,
        unit="MB",
        target=300,
    )
    yield Result(
        key="dirty memory",
        label="First sync, peak private memory without file pages",
        value=run.peak_dirty_bytes / MB,
        unit="MB",
    )
    yield Result(
        key="archive size",
        label="Archive and index size relative to the source",
        value=folder_size(context.home) / size,
        unit="",
        target=0.4,
    )
