"""A history of every source, the content of its archive, and a separate temporary folder."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.robustness.archived_history import archive_content, history_of, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("history"))


@pytest.fixture(scope="module")
def undisturbed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("undisturbed")
    with history_of(folder, home) as history:
        history.sync()
    found = archive_content(folder, home, home)
    assert found["verified"] == []
    assert found["unindexed"] == []
    assert all(found["found"].values())
    return found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a separate temporary folder, to see which files are left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder
