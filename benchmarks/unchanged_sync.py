"""Sync of an unchanged history, in process and as a command."""

from collections.abc import Iterator

from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.measurement import fastest, time_best
from benchmarks.result_table import Result, duration_result

_RUNS = 7


def measure(context: BenchmarkContext) -> Iterator[Result]:
    with context.open_history() as history:
        history.sync()
        duration = time_best(history.sync, runs=_RUNS)
    yield duration_result(
        "sync in process",
        "Sync without changes, in process",
        duration.wall_seconds,
        cpu_seconds=duration.cpu_seconds,
        target=80,
    )
    yield measure_command(context)


def measure_command(context: BenchmarkContext, *, key: str = "", label: str = "") -> Result:
    """Measure the command without changes. ``key`` and ``label`` precede those of the result."""
    run = fastest(context.run_command("sync", accepted_exit_codes=(0, 3)) for _ in range(_RUNS))
    return duration_result(
        f"{key}sync command",
        f"{label}backscroll sync, without changes",
        run.wall_seconds,
        cpu_seconds=run.cpu_seconds,
        target_ratio=3,
    )
