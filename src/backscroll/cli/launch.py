"""Start another program in place of this one, or describe the command."""

import os
import shutil
import subprocess
import sys
from typing import Any, NoReturn

import click

from backscroll.model.resume import Command

__all__ = ["command_document", "launch"]


def command_document(command: Command) -> dict[str, Any]:
    """Return a command as a JSON object, with a line for the shell."""
    return {
        "argv": command.argv,
        "folder": command.folder,
        "environ": command.environ,
        "shell": command.shell_line,
        "note": command.note,
    }


def launch(command: Command) -> NoReturn:
    """Replace this process with the program, in its folder. On Windows, run it and wait."""
    environ = {**os.environ, **command.environ}
    if command.folder is not None:
        os.chdir(command.folder)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        if os.name == "posix":
            os.execvpe(command.argv[0], command.argv, environ)
        program = shutil.which(command.argv[0]) or command.argv[0]  # may be a script with a suffix
        sys.exit(subprocess.run([program, *command.argv[1:]], env=environ, check=False).returncode)
    except FileNotFoundError:
        click.echo(f"{command.missing_program} To run it yourself:", err=True)
        click.echo(command.shell_line)
        sys.exit(1)
