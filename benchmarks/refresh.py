"""Looking again when there is nothing new."""

from collections.abc import Iterator

from benchmarks.figures import Figure, lasted
from benchmarks.measure import best, fastest
from benchmarks.stage import Stage

__all__ = ["figures"]


def figures(stage: Stage) -> Iterator[Figure]:
    with stage.history() as history:
        history.sync()
        took = best(history.sync, runs=7)
    in_process = "a refresh that finds nothing, in process"
    yield lasted("refresh-library", in_process, took.wall, processor=took.processor, wanted=80)
    ran = fastest(stage.command("sync", accept=(0, 3)) for _ in range(7))
    yield lasted(
        "refresh", "the same as a command: backscroll sync", ran.wall, processor=ran.processor, times=3
    )
