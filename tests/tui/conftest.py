"""Fixtures: an archive of the demo history."""

import shutil
from pathlib import Path

import pytest

from tests.demo_archive import DemoArchive


@pytest.fixture(scope="session")
def demo_home(demo_archive: DemoArchive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of an archive that tests only read."""
    home = tmp_path_factory.mktemp("tui").resolve() / "home"
    demo_archive.copy(home).close()
    return home


@pytest.fixture
def demo_home_copy(demo_home: Path, tmp_path: Path) -> Path:
    """Return a copy of the archive that a test may change."""
    return Path(shutil.copytree(demo_home, tmp_path / "home"))
