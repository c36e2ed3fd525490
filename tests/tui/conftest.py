"""The demo, synced once for all tests that only look at it."""

import shutil
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing import demo

FOLDERS = {"claude-code": ".claude", "cursor": ".config/Cursor", "cursor-cli": ".cursor"}


@pytest.fixture(scope="session")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of the demo."""
    folder = tmp_path_factory.mktemp("tui").resolve()
    demo.write(folder / "demo")
    roots = [NamedRoot(name, folder / "demo" / below) for name, below in FOLDERS.items()]
    with History(home=folder / "home", roots=roots) as history:
        history.sync()
    return folder / "home"


@pytest.fixture
def own(synced: Path, tmp_path: Path) -> Path:
    """The same for a test that changes it."""
    return Path(shutil.copytree(synced, tmp_path / "home"))
