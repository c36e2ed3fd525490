"""Run the installed command in a terminal of a given size."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

from tests.cli.run_command import COMMAND

__all__ = ["in_terminal", "uncoloured"]


def in_terminal(
    *arguments: str | Path, columns: int = 80, lines: int = 24, pager: str = "cat", **environ: str
) -> str:
    """Return what the command prints, including standard error."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    clean = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**clean, "TERM": "xterm", "PAGER": pager, "TZ": "UTC", **environ},
    )
    os.close(terminal)
    output = b""
    try:
        while data := os.read(controller, 65536):
            output += data
    except OSError:
        pass  # Linux: the other end is closed
    os.close(controller)
    process.wait(timeout=60)
    return output.decode().replace("\r\n", "\n")


def uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
