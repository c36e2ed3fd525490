"""Fixtures: the demo, written once for all tests that do not change it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll import sources
from backscroll.history.history import History
from backscroll.sources.protocols import close
from backscroll.testing.demo import Demo
from tests.demo_archive import DemoArchive
from tests.oracle.fold import ParsedSession, fold


@pytest.fixture(scope="session")
def home(written: Demo) -> Path:
    return Path(written.folder)


@pytest.fixture(scope="session")
def written(demo_archive: DemoArchive) -> Demo:
    return demo_archive.written


@pytest.fixture(scope="module")
def history(demo_archive: DemoArchive, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    with demo_archive.copy(tmp_path_factory.mktemp("archive")) as history:
        yield history


@pytest.fixture(scope="session")
def sessions(written: Demo) -> dict[str, ParsedSession]:
    """Return every session by id, as the sources parse it. A store has priority over a text copy."""
    found: dict[str, ParsedSession] = {}
    for session in _parse_sessions(written):
        if session.opening.agent_id is None and session.opening.store not in (
            "prompts",
            "transcript",
            "search",
        ):
            found[session.opening.id] = session
    for session in _parse_sessions(written):
        if session.opening.agent_id is None:
            found.setdefault(session.opening.id, session)
    return found


def _parse_sessions(written: Demo) -> Iterator[ParsedSession]:
    for name, root in written.roots.items():
        source = sources.named(name)
        for unit in source.units(Path(root)):
            yield from fold(source.read(unit)).sessions
        close(source)
