"""Copy with a program of the system, because many terminals do not support OSC 52 or disable it."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping

__all__ = ["copy_with_program"]

TIMEOUT_SECONDS = 2.0


def copy_with_program(text: str) -> bool:
    """Copy the text with the first clipboard program that works. Return False if none does."""
    for command in _clipboard_commands(os.environ):
        if shutil.which(command[0]) is None:
            continue
        try:
            subprocess.run(
                command,
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TIMEOUT_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return True
    return False


def _clipboard_commands(environ: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the commands to try. Those that need a display are omitted without one."""
    if "TMUX" in environ:
        yield ["tmux", "load-buffer", "-w", "-"]
    if "WAYLAND_DISPLAY" in environ:
        yield ["wl-copy"]
    if "DISPLAY" in environ:
        yield ["xclip", "-selection", "clipboard"]
        yield ["xsel", "--clipboard", "--input"]
    yield ["pbcopy"]
    yield ["clip.exe"]
