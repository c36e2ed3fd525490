"""Fixtures: an archive of the demo history."""

import shutil
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing import demo

SOURCE_FOLDERS = {"claude-code": ".claude", "cursor": ".config/Cursor", "cursor-cli": ".cursor"}


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of an archive that tests only read."""
    folder = tmp_path_factory.mktemp("tui").resolve()
    demo.write(folder / "demo")
    roots = [NamedRoot(source, folder / "demo" / path) for source, path in SOURCE_FOLDERS.items()]
    with History(home=folder / "home", roots=roots) as history:
        history.sync()
    return folder / "home"


@pytest.fixture
def demo_home_copy(demo_home: Path, tmp_path: Path) -> Path:
    """Return a copy of the archive that a test may change."""
    return Path(shutil.copytree(demo_home, tmp_path / "home"))
