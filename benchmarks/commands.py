"""What a person waits for who types a command."""

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.measure import Ran, run
from benchmarks.stage import BACKSCROLL, Stage
from benchmarks.words import COMMON

__all__ = ["figures"]

_RUNS = 9
_ASKED = (
    ("list-command", ("list", "--json"), 220),
    ("list-only", ("list", "--no-sync", "--json"), 100),
    ("search-command", ("search", COMMON, "--json"), 250),
    ("search-only", ("search", "--no-sync", COMMON, "--json"), 120),
    ("stats-only", ("stats", "--no-sync", "--json"), 1000),
    ("stats-by-day", ("stats", "--no-sync", "--by", "day", "--json"), 1000),
    ("stats-by-tool", ("stats", "--no-sync", "--by", "tool", "--json"), 1000),
)


def figures(stage: Stage) -> Iterator[Figure]:
    stage.ready()
    stage.command("sync", accept=(0, 3))
    for key, words, wanted in _ASKED:
        ran = _fastest([stage.command(*words) for _ in range(_RUNS)])
        shown = " ".join(word for word in words if word != "--json")
        yield _figure(key, f"backscroll {shown}", ran, wanted)
    ran = _fastest([run([*BACKSCROLL, "--version"]) for _ in range(_RUNS)])
    yield _figure("version", "backscroll --version", ran, 60)


def _figure(key: str, what: str, ran: Ran, wanted: float) -> Figure:
    return Figure(
        key=key, what=what, value=ran.wall * 1000, unit="ms", wanted=wanted, processor=ran.processor
    )


def _fastest(runs: list[Ran]) -> Ran:
    return min(runs, key=lambda one: one.wall)
