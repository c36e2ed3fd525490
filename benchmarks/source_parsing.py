"""Parsing speed and memory of the sources, without archive and index."""

import sys
from collections.abc import Iterator
from pathlib import Path

from backscroll.model.store import Unit
from backscroll.sources import named
from backscroll.sources.protocols import close
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.generated_histories import (
    MB,
    cursor_cli_history,
    cursor_history,
    folder_size,
    large_session_history,
)
from benchmarks.measurement import run_process, time_best
from benchmarks.result_table import Result, duration_result


def measure(context: BenchmarkContext) -> Iterator[Result]:
    if context.scale == "S":
        size = folder_size(context.root)
        duration = time_best(lambda: _parse("claude-code", context.root))
        yield Result(
            key="parse claude-code",
            label=f"Claude Code, parsing {size / MB:,.0f} MB in one process",
            value=size / MB / duration.wall_seconds,
            unit="MB/s",
            target=150,
            higher_is_better=True,
            cpu_seconds=duration.cpu_seconds,
        )
    yield _measure_large_session()
    yield from _measure_cursor()
    duration = time_best(lambda: _parse("cursor-cli", cursor_cli_history()))
    yield duration_result("parse cursor-cli", "Cursor CLI, parsing 49 stores", duration.wall_seconds)


def _measure_large_session() -> Result:
    code = (
        "from pathlib import Path; from backscroll.sources import named\n"
        f"source = named('claude-code'); root = Path({str(large_session_history())!r})\n"
        "for unit in source.units(root):\n"
        "    for item in source.read(unit): pass\n"
    )
    run = run_process([sys.executable, "-c", code], sample_memory=True)
    return Result(
        key="parse large session",
        label="Claude Code, peak memory for a session of 500 MB with a line of 50 MB",
        value=run.peak_bytes / MB,
        unit="MB",
        target=300,
    )


def _measure_cursor() -> Iterator[Result]:
    root = cursor_history()
    units = sorted((unit for unit in named("cursor").units(root) if unit.kind == "session"), key=_row_count)
    duration = time_best(lambda: list(named("cursor").units(root)))
    yield duration_result(
        "list cursor", "Cursor 500 MB, listing the units", duration.wall_seconds, target=100
    )
    duration = time_best(lambda: _parse("cursor", root), runs=2)
    yield Result(
        key="parse cursor", label="Cursor 500 MB, parsing", value=duration.wall_seconds, unit="s", target=3
    )
    duration = time_best(lambda: _parse("cursor", root, units[-1:]))
    yield duration_result(
        "parse composer",
        f"Cursor 500 MB, parsing the largest session ({_row_count(units[-1]):,} rows)",
        duration.wall_seconds,
        target=50,
    )


def _row_count(unit: Unit) -> int:
    """Return the size of a Cursor unit, which is its number of rows."""
    return unit.size


def _parse(name: str, root: Path, units: list[Unit] | None = None) -> None:
    source = named(name)
    for unit in units if units is not None else list(source.units(root)):
        for _ in source.read(unit):
            pass
    close(source)
