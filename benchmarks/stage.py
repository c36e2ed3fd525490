"""What the questions of one run share: a history, the archive made of it, and ways to ask it."""

import shutil
import sys
from functools import cached_property
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history import History
from benchmarks.histories import FOLDER, claude_of, warm
from benchmarks.measure import Ran, run

__all__ = ["Stage"]

_CODE = "import sys; from backscroll.cli import main; sys.argv[0] = 'backscroll'; main()"


class Stage:
    """One run at one scale. The archive is made anew unless the one of the last run is wanted."""

    def __init__(self, scale: str, *, keep: bool = False) -> None:
        self.scale = scale
        self.home = FOLDER / f"home-{scale}"
        self._keep = keep

    @cached_property
    def root(self) -> Path:
        """Claude Code's folder, read once so that it lies in memory."""
        root = claude_of(self.scale)
        warm(root)
        return root

    @cached_property
    def first_sync(self) -> Ran:
        """The sync that makes the archive."""
        shutil.rmtree(self.home, ignore_errors=True)
        return self.command("sync", memory=True, accept=(0, 3))

    def ready(self) -> None:
        """See to it that there is an archive."""
        if not (self._keep and (self.home / "archive.db").exists()):
            assert self.first_sync

    def history(self, *more: NamedRoot) -> History:
        """The library, on the archive of this run."""
        self.ready()
        return History(roots=[NamedRoot("claude-code", self.root), *more], home=self.home)

    def command(self, *words: str, memory: bool = False, accept: tuple[int, ...] = (0,)) -> Ran:
        """A command as a person gives it: a process of its own."""
        places = ["--home", str(self.home), "--root", f"claude-code={self.root}"]
        return run([*BACKSCROLL, *places, *words], memory=memory, accept=accept)


def _program() -> list[str]:
    """The installed command where there is one: it starts as it does for people."""
    installed = Path(sys.executable).with_name("backscroll")
    return [str(installed)] if installed.exists() else [sys.executable, "-c", _CODE]


BACKSCROLL = _program()
