"""``backscroll star``: sessions to come back to."""

import click

from backscroll.cli.annotation_output import as_json, change
from backscroll.cli.app import Setup
from backscroll.cli.completion_values import complete_refs

__all__ = ["command"]


@click.command("star")
@click.argument("ref", shell_complete=complete_refs)
@click.option("--off", is_flag=True, help="Take the star away.")
@as_json
@click.pass_obj
def command(setup: Setup, ref: str, off: bool, as_json: bool) -> None:
    """Mark a session as one to come back to, in the archive only.

    backscroll list --starred and backscroll search is:starred find it.

    Example:

        backscroll star 1
    """
    change(setup, ref, lambda history, known: history.star_session(known, not off), as_json=as_json)
