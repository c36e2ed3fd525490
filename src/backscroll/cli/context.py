"""What the global options say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backscroll.history import History

__all__ = ["Setup"]


class Setup:
    """What the global options say."""

    def __init__(self, home: Path | None, roots: tuple[str, ...]) -> None:
        self.home = home
        self.roots = roots

    def history(self) -> History:
        """The library, set up as the options say."""
        from backscroll.config import named_roots, this_machine
        from backscroll.history import History

        machine = this_machine()
        history = History(roots=named_roots(self.roots, machine), home=self.home, machine=machine)
        for name in history.settings.unknown:
            file = history.archive_path.with_name("config.toml")
            sys.stderr.write(f"{file}: nothing here is called {name!r}\n")
        return history
