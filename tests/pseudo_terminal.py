"""Pseudo-terminals of a given size."""

import fcntl
import os
import pty
import struct
import termios


def open_terminal(*, columns: int, lines: int) -> tuple[int, int]:
    """Open a terminal. Return the descriptors of its controller and of the terminal itself."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    return controller, terminal


def read_terminal(controller: int) -> str:
    """Return what was printed until all processes closed the terminal. Closes the controller."""
    output = b""
    try:
        while data := os.read(controller, 65536):
            output += data
    except OSError:
        pass  # Linux: the other end is closed
    os.close(controller)
    return output.decode().replace("\r\n", "\n")
