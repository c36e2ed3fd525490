"""Where things live on a machine: what a source needs to know to find its tool's history."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

__all__ = ["Machine", "this_machine"]


class Machine(Struct, frozen=True):
    """A home folder, an environment and an operating system; tests make their own."""

    home: Path
    environ: Mapping[str, str] = {}
    system: str = "linux"  # as sys.platform says it

    def folder(self, variable: str, default: Path) -> Path:
        """The folder an environment variable names, or the default when it is unset or empty."""
        named = self.environ.get(variable, "")
        return self.expanded(named) if named else default

    def expanded(self, path: str) -> Path:
        """A path as typed, with a leading ``~`` standing for this machine's home."""
        if path == "~" or path.startswith(("~/", "~\\")):
            return self.home / path[2:]
        return Path(path)


def this_machine() -> Machine:
    """The machine this process runs on."""
    return Machine(Path.home(), dict(os.environ), sys.platform)
