"""Looking again when there is nothing new."""

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.measure import best
from benchmarks.stage import Stage

__all__ = ["figures"]


def figures(stage: Stage) -> Iterator[Figure]:
    with stage.history() as history:
        history.sync()
        took = best(history.sync, runs=7)
    yield Figure(
        key="refresh-library",
        what="a refresh that finds nothing, in process",
        value=took.wall * 1000,
        unit="ms",
        wanted=80,
        processor=took.processor,
    )
    ran = min((stage.command("sync", accept=(0, 3)) for _ in range(7)), key=lambda one: one.wall)
    yield Figure(
        key="refresh",
        what="the same as a command: backscroll sync",
        value=ran.wall * 1000,
        unit="ms",
        times=3,
        processor=ran.processor,
    )
