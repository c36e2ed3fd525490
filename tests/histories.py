"""Sample histories: every generation that the builders of each source can write."""

from collections.abc import Callable
from pathlib import Path

import pytest

from backscroll import sources
from backscroll.sources import Source
from backscroll.testing import cursor_cli
from tests.builders.claude_code import generations as claude_generations
from tests.builders.cursor import generations as cursor_generations
from tests.builders.cursor_cli import stores as cursor_cli_stores


class History:
    """Sample history and the source that reads it."""

    def __init__(self, source: str, name: str, write: Callable[[Path], object]) -> None:
        self.source_name = source
        self.name = name
        self._write = write

    def __repr__(self) -> str:
        return f"{self.source_name} {self.name}"

    def source(self) -> Source:
        return sources.named(self.source_name)

    def write(self, root: Path) -> Path:
        root.mkdir(parents=True, exist_ok=True)
        self._write(root)
        return root


def _claude(name: str) -> History:
    return History("claude-code", name, lambda root: claude_generations.GENERATIONS[name](root, 0))


def _cursor(name: str) -> History:
    return History("cursor", name, lambda root: cursor_generations.GENERATIONS[name].write(root))


def _cursor_cli(name: str) -> History:
    return History("cursor-cli", name, lambda root: cursor_cli_stores.STORES[name](cursor_cli.Home(root)))


HISTORIES = [
    *map(_claude, claude_generations.GENERATIONS),
    *map(_cursor, cursor_generations.GENERATIONS),
    *map(_cursor_cli, cursor_cli_stores.STORES),
]
_SLOW = ("g2-split-bubbles", "g3-global-index", "g4-header-table")
# For tests that take seconds with each large database of Cursor.
HISTORIES_WITH_SOAK = [
    pytest.param(one, marks=pytest.mark.soak) if one.name in _SLOW else one for one in HISTORIES
]
