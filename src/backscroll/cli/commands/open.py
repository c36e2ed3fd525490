"""``backscroll open``: open a session's workspace, or a file that a message changed or read."""

import os
import shutil
import subprocess
import sys
from typing import Any, NoReturn

import click

from backscroll.cli.options import complete_refs, launch_options, sync_before_reading
from backscroll.cli.output import write_json
from backscroll.cli.startup import Setup
from backscroll.model.resume import Command
from backscroll.model.text import sanitize


@click.command("open")
@click.argument("ref", shell_complete=complete_refs)
@click.argument("message", required=False)
@launch_options
@click.pass_obj
def command(
    setup: Setup, ref: str, message: str | None, only_print: bool, as_json: bool, no_sync: bool
) -> None:
    """Open a session's workspace, or a file that a message changed or read.

    MESSAGE is a number or id from 'show'. Uses the editor in VISUAL or EDITOR, else an installed one, else
    the system's default. A remote workspace opens on its host, in Cursor or an editor like it.
    REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll open 1
      backscroll open 1 4
    """
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        position = None if message is None else history.transcript.find_message(history.find(ref), message)
        editor_command = history.resume.open_command(ref, position)
    if as_json:
        write_json(command_document(editor_command))
        return
    if only_print:
        click.echo(sanitize(editor_command.shell_line))
        return
    launch(editor_command)


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


def command_document(command: Command) -> dict[str, Any]:
    """Return a command as a JSON object, with a line for the shell."""
    return {
        "argv": command.argv,
        "folder": command.folder,
        "environ": command.environ,
        "shell": command.shell_line,
        "note": command.note,
    }
