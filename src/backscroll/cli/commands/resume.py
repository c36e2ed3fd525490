"""``backscroll resume``: a session continued in its own tool."""

import sys
from typing import Any

import click
import msgspec

from backscroll.cli.completion_values import complete_refs
from backscroll.cli.launch import command_document, launch
from backscroll.cli.options import sync_before_reading
from backscroll.cli.setup import Setup
from backscroll.history import History
from backscroll.model.sanitize import sanitize
from backscroll.model.tool import Resumption
from backscroll.render.json import encode_json

__all__ = ["command"]


@click.command("resume")
@click.argument("ref", shell_complete=complete_refs)
@click.option("--print", "only_print", is_flag=True, help="Print what would be run, and run nothing.")
@click.option("--restore", is_flag=True, help="First put back the files that the tool has deleted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, and run nothing.")
@click.option("--no-sync", is_flag=True, help="Go by what the archive holds, unrefreshed.")
@click.pass_obj
def command(setup: Setup, ref: str, only_print: bool, restore: bool, as_json: bool, no_sync: bool) -> None:
    """Continue a session in the tool that held it, in its folder.

    A session that the tool has deleted is put back with --restore, where its files are kept; nothing is ever
    overwritten. Without it, what would be put back is said.

    Example:

        backscroll resume 1
    """
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        found = history.resumption(ref)
        if restore and not only_print and not as_json and found.session.is_gone:
            found = _restored(history, found)
    if as_json:
        sys.stdout.buffer.write(encode_json(_document(found)))
        return
    _tell(found, with_files=found.returning is not None)
    if found.command is None:
        sys.exit(1)
    if only_print:
        click.echo(sanitize(found.command.shell_line))
        return
    if found.obstacle is not None or not found.is_installed:
        program = found.command.argv[0]
        missing = "" if found.is_installed else f"{program} is not installed here, or not on the PATH. "
        click.echo(f"{missing}The command would be:", err=True)
        click.echo(sanitize(found.command.shell_line))
        sys.exit(1)
    launch(found.command)


def _restored(history: History, found: Resumption) -> Resumption:
    """The same once the files are back."""
    if found.returning is None or not found.returning.files:
        return found
    for path in history.put_back(found.session.ref):
        click.echo(sanitize(f"Put back {path}"), err=True)
    history.sync()
    return history.resumption(found.session.ref)


def _tell(found: Resumption, *, with_files: bool) -> None:
    if found.obstacle is not None:
        click.echo(sanitize(f"{found.obstacle}."), err=True)
    if with_files and found.returning is not None:
        for path in found.returning.files:
            click.echo(sanitize(f"  {path}"), err=True)
    if found.command is not None and found.command.note is not None:
        click.echo(sanitize(f"{found.command.note}."), err=True)


def _document(found: Resumption) -> dict[str, Any]:
    return {
        "ref": found.session.ref,
        "is_gone": found.session.is_gone,
        "command": command_document(found.command) if found.command is not None else None,
        "obstacle": found.obstacle,
        "is_installed": found.is_installed,
        "restorable": msgspec.structs.asdict(found.returning) if found.returning is not None else None,
    }
