"""``backscroll show``: a session, message by message."""

import sys

import click

from backscroll.cli.app import Setup
from backscroll.cli.options import bring_up_to_date, reading
from backscroll.render.documents import encoded, session_document
from backscroll.render.text import transcript_lines

__all__ = ["command"]


@click.command("show")
@click.argument("ref")
@click.option("--all", "everything", is_flag=True, help="Abandoned branches and injected text as well.")
@click.option("--full", is_flag=True, help="Tool output uncut.")
@reading
@click.pass_obj
def command(setup: Setup, ref: str, everything: bool, full: bool, as_json: bool, no_sync: bool) -> None:
    """Show a session.

    REF is an index of the list, an id, or any unambiguous beginning of one.

    Example:

        backscroll show 1
    """
    with setup.history() as history:
        if not no_sync:
            bring_up_to_date(history)
        session = history.get_session(ref)
    if as_json:
        sys.stdout.buffer.write(encoded(session_document(session)))
        return
    lines = transcript_lines(session, everything=everything, full=full)
    if sys.stdout.isatty():
        click.echo_via_pager(f"{line}\n" for line in lines)
    else:
        click.echo("\n".join(lines))
