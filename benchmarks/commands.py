"""What a person waits for who types a command."""

from collections.abc import Iterator

from benchmarks.figures import Figure, lasted
from benchmarks.measure import fastest, run
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
        ran = fastest(stage.command(*words) for _ in range(_RUNS))
        shown = " ".join(word for word in words if word != "--json")
        yield lasted(key, f"backscroll {shown}", ran.wall, processor=ran.processor, wanted=wanted)
    ran = fastest(run([*BACKSCROLL, "--version"]) for _ in range(_RUNS))
    yield lasted("version", "backscroll --version", ran.wall, processor=ran.processor, wanted=60)
