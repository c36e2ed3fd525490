"""What reading alone costs: the sources without archive and index."""

import sys
from collections.abc import Iterator
from pathlib import Path

from backscroll.model import Unit
from backscroll.sources import named
from backscroll.sources.protocols import close
from benchmarks.figures import Figure
from benchmarks.histories import MB, claude_large, cursor_agent, cursor_ide, size_of
from benchmarks.measure import best, run
from benchmarks.stage import Stage

__all__ = ["figures"]


def figures(stage: Stage) -> Iterator[Figure]:
    if stage.scale == "S":
        size = size_of(stage.root)
        took = best(lambda: _read("claude-code", stage.root))
        yield Figure(
            key="read claude-code",
            what=f"Claude Code, {size / MB:,.0f} MB decoded by one process",
            value=size / MB / took.wall,
            unit="MB/s",
            wanted=150,
            more_is_better=True,
            processor=took.processor,
        )
    yield _large_session()
    yield from _cursor()
    took = best(lambda: _read("cursor-cli", cursor_agent()))
    yield Figure(
        key="read cursor-cli", what="Cursor CLI, 49 stores decoded", value=took.wall * 1000, unit="ms"
    )


def _large_session() -> Figure:
    code = (
        "from pathlib import Path; from backscroll.sources import named\n"
        f"source = named('claude-code'); root = Path({str(claude_large())!r})\n"
        "for unit in source.units(root):\n"
        "    for item in source.read(unit): pass\n"
    )
    ran = run([sys.executable, "-c", code], memory=True)
    return Figure(
        key="read large",
        what="memory for one session of 500 MB with a line of 50 MB",
        value=ran.memory / MB,
        unit="MB",
        wanted=300,
    )


def _cursor() -> Iterator[Figure]:
    root = cursor_ide()
    units = sorted((unit for unit in named("cursor").units(root) if unit.kind == "session"), key=_rows)
    took = best(lambda: list(named("cursor").units(root)))
    yield Figure(
        key="list cursor", what="Cursor, 500 MB listed", value=took.wall * 1000, unit="ms", wanted=100
    )
    took = best(lambda: _read("cursor", root), runs=2)
    yield Figure(key="read cursor", what="Cursor, 500 MB decoded", value=took.wall, unit="s", wanted=3)
    took = best(lambda: _read("cursor", root, units[-1:]))
    yield Figure(
        key="read composer",
        what=f"Cursor, the largest session ({_rows(units[-1]):,} rows) decoded",
        value=took.wall * 1000,
        unit="ms",
        wanted=50,
    )


def _rows(unit: Unit) -> int:
    return unit.size


def _read(name: str, root: Path, units: list[Unit] | None = None) -> None:
    source = named(name)
    for unit in units if units is not None else list(source.units(root)):
        for _ in source.read(unit):
            pass
    close(source)
