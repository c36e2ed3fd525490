"""Run time of common commands, including the start of the process."""

from collections.abc import Iterator

from benchmarks.benchmark_context import BACKSCROLL_COMMAND, BenchmarkContext
from benchmarks.measurement import fastest, run_process
from benchmarks.result_table import Result, duration_result
from benchmarks.word_search import COMMON_WORD

_RUNS = 9
_COMMANDS = (  # key, arguments, target in milliseconds
    ("list-command", ("list", "--json"), 220),
    ("list-only", ("list", "--no-sync", "--json"), 100),
    ("search-command", ("search", COMMON_WORD, "--json"), 250),
    ("search-only", ("search", "--no-sync", COMMON_WORD, "--json"), 120),
    ("stats-only", ("stats", "--no-sync", "--json"), 1000),
    ("stats-by-day", ("stats", "--no-sync", "--by", "day", "--json"), 1000),
    ("stats-by-tool", ("stats", "--no-sync", "--by", "tool", "--json"), 1000),
)


def measure(context: BenchmarkContext) -> Iterator[Result]:
    context.ensure_archive()
    context.run_command("sync", accepted_exit_codes=(0, 3))
    for key, arguments, target in _COMMANDS:
        run = fastest(context.run_command(*arguments) for _ in range(_RUNS))
        label = " ".join(["backscroll", *(argument for argument in arguments if argument != "--json")])
        yield duration_result(key, label, run.wall_seconds, cpu_seconds=run.cpu_seconds, target=target)
    run = fastest(run_process([*BACKSCROLL_COMMAND, "--version"]) for _ in range(_RUNS))
    yield duration_result(
        "version", "backscroll --version", run.wall_seconds, cpu_seconds=run.cpu_seconds, target=60
    )
