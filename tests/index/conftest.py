"""An empty index."""

from pathlib import Path

import pytest

from backscroll.index.store import Index


@pytest.fixture
def index(tmp_path: Path) -> Index:
    index = Index(tmp_path / "index")
    index.rebuild()
    return index
