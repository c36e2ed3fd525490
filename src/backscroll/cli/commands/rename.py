"""``backscroll rename``: a title of one's own."""

import click

from backscroll.cli.annotation_output import as_json, change
from backscroll.cli.app import Setup
from backscroll.cli.completion_values import complete_refs

__all__ = ["command"]


@click.command("rename")
@click.argument("ref", shell_complete=complete_refs)
@click.argument("title", required=False)
@click.option("--reset", is_flag=True, help="Show the tool's own title again.")
@as_json
@click.pass_obj
def command(setup: Setup, ref: str, title: str | None, reset: bool, as_json: bool) -> None:
    """Show a session under a title of your own, in the archive only.

    The tool's files stay as they are, and its own title still finds the session.

    Example:

        backscroll rename 1 "The night the clocks went back"
    """
    if (title is None) is not reset:
        raise click.UsageError("give the new TITLE, or --reset")
    change(setup, ref, lambda history, known: history.rename_session(known, title), as_json=as_json)
