"""``backscroll untag``: tags taken away again."""

import click

from backscroll.cli.annotation_output import as_json, change
from backscroll.cli.app import Setup
from backscroll.cli.completion_values import complete_refs, complete_tags

__all__ = ["command"]


@click.command("untag")
@click.argument("ref", shell_complete=complete_refs)
@click.argument("tags", nargs=-1, required=True, metavar="TAG...", shell_complete=complete_tags)
@as_json
@click.pass_obj
def command(setup: Setup, ref: str, tags: tuple[str, ...], as_json: bool) -> None:
    """Take tags away from a session.

    Example:

        backscroll untag 1 flaky
    """
    change(setup, ref, lambda history, known: history.tag_session(known, take=tags), as_json=as_json)
