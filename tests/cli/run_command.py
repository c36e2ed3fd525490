"""Run the command in a process of its own."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from backscroll.config import NamedRoot
from backscroll.history.history import History
from tests.forked_process import COMMAND, run_forked


class Result:
    """Output and exit code of a command."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr


def backscroll(*arguments: str | Path, **environ: str) -> Result:
    """Run the command with these arguments and environment variables."""
    return Result(run_forked([COMMAND, *arguments], env={**os.environ, **environ}))


class Shell:
    """Runs the command on a Claude Code history with a separate archive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.root = folder / "claude"
        self.options = ("--home", str(self.home), "--root", f"claude-code={self.root}")

    def run(self, *arguments: str | Path, **environ: str) -> Result:
        return backscroll(*self.options, *arguments, **environ)

    def sync(self) -> None:
        """Sync in this process, which is faster than the command."""
        with History(home=self.home, roots=[NamedRoot("claude-code", self.root)]) as history:
            history.sync()

    def json(self, *arguments: str | Path, **environ: str) -> Any:
        """Return the JSON document that a command prints."""
        result = self.run(*arguments, "--json", **environ)
        assert result.code == 0, result.err
        return json.loads(result.out)
