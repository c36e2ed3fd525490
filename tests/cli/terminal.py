"""Run the real command in a terminal of some size."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

from tests.cli.running import COMMAND

__all__ = ["in_terminal", "uncoloured"]


def in_terminal(
    *arguments: str | Path, columns: int = 80, lines: int = 24, pager: str = "cat", **environ: str
) -> str:
    """What the command prints there, standard error included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    clean = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**clean, "TERM": "xterm", "PAGER": pager, "TZ": "UTC", **environ},
    )
    os.close(theirs)
    told = b""
    try:
        while data := os.read(ours, 65536):
            told += data
    except OSError:
        pass  # how Linux says that nobody holds the other end any more
    os.close(ours)
    process.wait(timeout=60)
    return told.decode().replace("\r\n", "\n")


def uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
