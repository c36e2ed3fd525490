"""Run the real command."""

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["Ran", "backscroll"]

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
