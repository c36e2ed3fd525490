"""The demo, written once for all tests that only look at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll import sources
from backscroll.sources.protocols import close
from backscroll.testing import demo
from backscroll.testing.demo import Demo
from tests.oracle.fold import ParsedSession, fold


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "robin"


@pytest.fixture(scope="session")
def written(home: Path) -> Demo:
    return demo.write(home)


@pytest.fixture(scope="session")
def sessions(written: Demo) -> dict[str, ParsedSession]:
    """Every session by its id, as the sources tell it; a store counts before a text copy."""
    found: dict[str, ParsedSession] = {}
    for reading in _readings(written):
        if reading.opening.agent_id is None and reading.opening.store not in (
            "prompts",
            "transcript",
            "search",
        ):
            found[reading.opening.id] = reading
    for reading in _readings(written):
        if reading.opening.agent_id is None:
            found.setdefault(reading.opening.id, reading)
    return found


def _readings(written: Demo) -> Iterator[ParsedSession]:
    for name, root in written.roots.items():
        source = sources.named(name)
        for unit in source.units(Path(root)):
            yield from fold(source.read(unit)).sessions
        close(source)
