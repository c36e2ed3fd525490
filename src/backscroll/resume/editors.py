"""Commands that open a file at a line, or a folder."""

import shlex
import shutil
from pathlib import Path

from backscroll.config import Machine

__all__ = ["file_command", "folder_command", "remote_file_command", "remote_folder_command"]

_GOTO = ("cursor", "code", "code-insiders", "codium", "windsurf")  # -g FILE:LINE
_COLON = ("zed", "zeditor", "subl", "hx", "helix", "idea", "pycharm", "webstorm", "goland")  # FILE:LINE
_PLUS = (
    "vi",
    "vim",
    "nvim",
    "gvim",
    "nano",
    "emacs",
    "emacsclient",
    "micro",
    "kak",
    "joe",
    "ne",
)  # +LINE FILE


def file_command(path: str, line: int | None, machine: Machine) -> tuple[str, ...] | None:
    """Return the command that opens a file at a line: VISUAL, EDITOR, an installed editor, or the system."""
    for argv in (*_configured(machine), *((name,) for name in _GOTO)):
        if _is_installed(argv[0], machine):
            return _at_line(argv, path, line)
    return _system_command(path, machine)


def folder_command(path: str, machine: Machine) -> tuple[str, ...] | None:
    """Return the command that opens a folder: an editor with a file tree, the system, or any editor."""
    configured = _configured(machine)
    with_folders = [argv for argv in configured if _name(argv) in (*_GOTO, *_COLON)]
    for argv in (*with_folders, *((name,) for name in _GOTO)):
        if _is_installed(argv[0], machine):
            return (*argv, path)
    return _system_command(path, machine) or next(((*argv, path) for argv in configured), None)


def remote_folder_command(authority: str, path: str, machine: Machine) -> tuple[str, ...]:
    """Return the command that opens a folder on a remote host, such as ``ssh-remote+host``."""
    return (*_remote_editor(machine), "--folder-uri", f"vscode-remote://{authority}{path}")


def remote_file_command(authority: str, path: str, line: int | None, machine: Machine) -> tuple[str, ...]:
    """Return the command that opens a file on a remote host at a line."""
    return _at_line((*_remote_editor(machine), "--remote", authority), path, line)


def _remote_editor(machine: Machine) -> tuple[str, ...]:
    """Return an editor that can connect to a remote host: Cursor, even if not installed, or a relative."""
    able = [argv for argv in _configured(machine) if _name(argv) in _GOTO]
    installed = (argv for argv in (*able, *((name,) for name in _GOTO)) if _is_installed(argv[0], machine))
    return next(installed, (_GOTO[0],))


def _configured(machine: Machine) -> list[tuple[str, ...]]:
    """Return the editors of the environment, with their options."""
    named = (machine.environ.get("VISUAL", ""), machine.environ.get("EDITOR", ""))
    return [words for text in named if (words := _words(text))]


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:  # a quote that is never closed
        return tuple(text.split())


def _name(argv: tuple[str, ...]) -> str:
    return Path(argv[0]).stem.lower()


def _at_line(argv: tuple[str, ...], path: str, line: int | None) -> tuple[str, ...]:
    if line is None:
        return (*argv, path)
    name = _name(argv)
    if name in _GOTO:
        return (*argv, "-g", f"{path}:{line}")
    if name in _COLON:
        return (*argv, f"{path}:{line}")
    return (*argv, f"+{line}", path) if name in _PLUS else (*argv, path)


def _system_command(path: str, machine: Machine) -> tuple[str, ...] | None:
    match machine.system:
        case "darwin":
            return ("open", path)
        case "win32" | "cygwin":
            return ("explorer", path)
    return ("xdg-open", path) if _is_installed("xdg-open", machine) else None


def _is_installed(program: str, machine: Machine) -> bool:
    return shutil.which(program, path=machine.environ.get("PATH")) is not None
