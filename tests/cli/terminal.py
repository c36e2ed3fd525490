"""Run the command in a terminal of a given size."""

import os
import re
import select
import termios
from collections.abc import Sequence
from pathlib import Path

from tests.forked_process import COMMAND, ForkedProcess
from tests.pseudo_terminal import open_terminal, read_terminal

TIMEOUT_SECONDS = 60.0
TERMINATE = "terminate"  # in place of keys: sends SIGTERM


def in_terminal(
    *arguments: str | Path, columns: int = 80, lines: int = 24, pager: str = "cat", **environ: str
) -> str:
    """Return what the command prints, including standard error."""
    controller, terminal = open_terminal(columns=columns, lines=lines)
    clean = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    process = ForkedProcess(
        [COMMAND, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**clean, "TERM": "xterm", "PAGER": pager, "TZ": "UTC", **environ},
    )
    os.close(terminal)
    output = read_terminal(controller)
    process.wait(timeout=60)
    return output


def type_in_terminal(
    *arguments: str | Path, typed: Sequence[tuple[str, str]], stdout: int | None = None, **environ: str
) -> tuple[int, str]:
    """Run the command and type. Return its exit code and what it prints.

    Each text in ``typed`` is typed as soon as the text before it was printed. The settings of the terminal
    must be the same before and after.
    """
    controller, terminal = open_terminal(columns=80, lines=24)
    before = termios.tcgetattr(terminal)
    process = ForkedProcess(
        [COMMAND, *arguments],
        stdin=terminal,
        stdout=terminal if stdout is None else stdout,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "TZ": "UTC", **environ},
    )
    output = b""
    position = 0
    for expected, keys in typed:
        while (found := output.find(expected.encode(), position)) < 0:
            assert select.select([controller], [], [], TIMEOUT_SECONDS)[0], output.decode()
            output += os.read(controller, 65536)
        position = found + len(expected.encode())
        if keys == TERMINATE:
            process.terminate()
        else:
            os.write(controller, keys.encode())
    code = process.wait(timeout=TIMEOUT_SECONDS)
    while select.select([controller], [], [], 0.1)[0]:
        output += os.read(controller, 65536)
    assert termios.tcgetattr(terminal) == before
    os.close(terminal)
    os.close(controller)
    return code, output.decode().replace("\r\n", "\n")


def without_escapes(text: str) -> str:
    """Remove colors, and the cursor movements that erase a progress line."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
