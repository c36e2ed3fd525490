"""``backscroll open``: a session's workspace, or the file that a message is about."""

import sys

import click

from backscroll.cli.completion_values import complete_refs
from backscroll.cli.launch import command_document, launch
from backscroll.cli.options import sync_before_reading
from backscroll.cli.setup import Setup
from backscroll.model.sanitize import sanitize
from backscroll.render.json import encode_json

__all__ = ["command"]


@click.command("open")
@click.argument("ref", shell_complete=complete_refs)
@click.argument("message", required=False)
@click.option("--print", "only_print", is_flag=True, help="Print what would be run, and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, and run nothing.")
@click.option("--no-sync", is_flag=True, help="Go by what the archive holds, unrefreshed.")
@click.pass_obj
def command(
    setup: Setup, ref: str, message: str | None, only_print: bool, as_json: bool, no_sync: bool
) -> None:
    """Open a session's workspace, or the file that a message changed or looked at.

    MESSAGE is a #number as show has it, or an id. The editor is that of VISUAL or EDITOR, else one that is
    installed, else the system's choice.

    Example:

        backscroll open 1 4
    """
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        position = None if message is None else history.find_message(history.find(ref), message)
        found = history.opening(ref, position)
    if as_json:
        sys.stdout.buffer.write(encode_json(command_document(found)))
        return
    if only_print:
        click.echo(sanitize(found.shell_line))
        return
    launch(found)
