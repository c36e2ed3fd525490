"""Run the real command."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["COMMAND", "Ran", "Shell", "backscroll"]

COMMAND = Path(sys.executable).with_name("backscroll")


class Ran:
    """What a command printed and how it ended."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr


def backscroll(*arguments: str | Path, **environ: str) -> Ran:
    """Run the command with these arguments, in an environment of its own."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        check=False,
        timeout=60,
    )
    return Ran(done)


class Shell:
    """The command on one history of Claude Code, with an archive of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.root = folder / "claude"
        self.options = ("--home", str(self.home), "--root", f"claude-code={self.root}")

    def run(self, *arguments: str | Path, **environ: str) -> Ran:
        return backscroll(*self.options, *arguments, **environ)

    def json(self, *arguments: str | Path, **environ: str) -> Any:
        """The document that a command prints."""
        ran = self.run(*arguments, "--json", **environ)
        assert ran.code == 0, ran.err
        return json.loads(ran.out)
