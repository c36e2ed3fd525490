"""A history of every source, what an archive tells of it, and a place to see what is left behind."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.robustness.histories import history_of, told, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("history"))


@pytest.fixture(scope="module")
def undisturbed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("undisturbed")
    with history_of(folder, home) as history:
        history.sync()
    found = told(folder, home, home)
    assert found["verified"] == []
    assert found["unindexed"] == []
    assert all(found["found"].values())
    return found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of its own, to see what is left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder
