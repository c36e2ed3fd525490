"""The first sync: how fast, in how much memory, into how much room."""

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.histories import MB, size_of
from benchmarks.stage import Stage

__all__ = ["figures"]


def figures(stage: Stage) -> Iterator[Figure]:
    size = size_of(stage.root)
    ran = stage.first_sync
    yield Figure(
        key="sync",
        what=f"cold sync of {size / MB:,.0f} MB, indexed, the raw kept",
        value=size / MB / ran.wall,
        unit="MB/s",
        wanted=100,
        times=3.5,
        more_is_better=True,
        processor=ran.processor,
    )
    yield Figure(
        key="memory",
        what="peak private memory of it, all processes",
        value=ran.memory / MB,
        unit="MB",
        wanted=300,
    )
    yield Figure(
        key="dirty",
        what="of that, without pages of files it reads",
        value=ran.dirty / MB,
        unit="MB",
    )
    yield Figure(
        key="room",
        what="archive and index, raw included, to the source",
        value=size_of(stage.home) / size,
        unit="",
        wanted=0.4,
    )
