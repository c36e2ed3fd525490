"""``backscroll open``: open a session's workspace, or a file that a message changed or read."""

import click

from backscroll.cli.completion_values import complete_refs
from backscroll.cli.global_options import Setup
from backscroll.cli.launch import command_document, launch
from backscroll.cli.options import launch_options, sync_before_reading
from backscroll.cli.output.json_documents import write_json
from backscroll.model.text import sanitize

__all__ = ["command"]


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
