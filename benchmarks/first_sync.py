"""First sync: throughput, peak memory and archive size."""

from collections.abc import Iterator

from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.generated_histories import MB, folder_size
from benchmarks.result_table import Result


def measure(context: BenchmarkContext) -> Iterator[Result]:
    return measure_first_sync(context, target=100, target_ratio=3.5)


def measure_first_sync(
    context: BenchmarkContext, *, target: float, target_ratio: float, key: str = "", label: str = ""
) -> Iterator[Result]:
    """Measure the first sync of a history. ``key`` and ``label`` precede those of each result."""
    size = folder_size(context.root)
    run = context.first_sync
    yield Result(
        key=f"{key}sync",
        label=f"{label}First sync, {size / MB:,.0f} MB",
        value=size / MB / run.wall_seconds,
        unit="MB/s",
        target=target,
        target_ratio=target_ratio,
        higher_is_better=True,
        cpu_seconds=run.cpu_seconds,
    )
    yield Result(
        key=f"{key}memory",
        label=f"{label}First sync, peak private memory",
        value=run.peak_bytes / MB,
        unit="MB",
        target=300,
    )
    yield Result(
        key=f"{key}dirty memory",
        label=f"{label}First sync, peak private memory without file pages",
        value=run.peak_dirty_bytes / MB,
        unit="MB",
    )
    yield Result(
        key=f"{key}archive size",
        label=f"{label}Archive and index size relative to the source",
        value=folder_size(context.home) / size,
        unit="",
        target=0.4,
    )
