"""First sync and unchanged sync of a history in several languages."""

from collections.abc import Iterator

from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.first_sync import measure_first_sync
from benchmarks.result_table import Result
from benchmarks.unchanged_sync import measure_command

_KEY, _LABEL = "multilingual ", "Multilingual: "


def measure(context: BenchmarkContext) -> Iterator[Result]:
    if context.scale != "S":
        return
    multilingual = BenchmarkContext("M")
    yield from measure_first_sync(multilingual, target=70, target_ratio=2, key=_KEY, label=_LABEL)
    yield measure_command(multilingual, key=_KEY, label=_LABEL)
