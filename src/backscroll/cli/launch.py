"""Handing the terminal over to another program, or printing what would be run."""

import os
import shutil
import subprocess
import sys
from typing import Any, NoReturn

import click

from backscroll.model.tool import Command

__all__ = ["command_document", "launch"]


def command_document(command: Command) -> dict[str, Any]:
    """A command for programs, and as it would be typed."""
    return {
        "argv": command.argv,
        "folder": command.folder,
        "environ": command.environ,
        "shell": command.shell_line,
        "note": command.note,
    }


def launch(command: Command) -> NoReturn:
    """Become the program, in its folder, so that the terminal is its own. Where that is not done, wait."""
    environ = {**os.environ, **command.environ}
    if command.folder is not None:
        os.chdir(command.folder)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        if os.name == "posix":
            os.execvpe(command.argv[0], command.argv, environ)
        program = shutil.which(command.argv[0]) or command.argv[0]  # it may be a script with an ending
        sys.exit(subprocess.run([program, *command.argv[1:]], env=environ, check=False).returncode)
    except FileNotFoundError:
        click.echo(f"{command.argv[0]} is not installed here, or not on the PATH. The command is:", err=True)
        click.echo(command.shell_line)
        sys.exit(1)
