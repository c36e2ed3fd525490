"""Repositories for the tests of the git package."""

import shutil
from pathlib import Path

import pytest

from tests.builders.git_repository import GitRepository

if shutil.which("git") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def checkout(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "project")
