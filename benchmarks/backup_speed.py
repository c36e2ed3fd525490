"""Backup of a history and a Cursor database, and its verification: throughput and peak memory."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.generated_histories import MB
from benchmarks.result_table import Result


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure bytes of original files per second, and the peak memory of both commands."""
    context.ensure_archive()
    with TemporaryDirectory() as folder:
        path = str(Path(folder, "backup.zip"))
        create = context.run_command("backup", "create", "--no-sync", "-o", path, sample_memory=True)
        shown = context.run_command("backup", "show", path, "--json")
        verify = context.run_command("backup", "verify", path, sample_memory=True)
    size = sum(file["size"] for file in json.loads(shown.stdout)["files"])
    for name, run in (("create", create), ("verify", verify)):
        yield Result(
            key=f"backup-{name}",
            label=f"backup {name}",
            value=size / MB / run.wall_seconds,
            unit="MB/s",
            target=150,
            higher_is_better=True,
            cpu_seconds=run.cpu_seconds,
        )
        yield Result(
            key=f"backup-{name}-memory",
            label=f"backup {name}, peak memory",
            value=run.peak_bytes / MB,
            unit="MB",
            target=300,
        )
