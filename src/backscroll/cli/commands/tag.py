"""``backscroll tag``: words to find sessions by."""

import click

from backscroll.cli.annotation_output import as_json, change
from backscroll.cli.app import Setup
from backscroll.cli.completion_values import complete_refs, complete_tags

__all__ = ["command"]


@click.command("tag")
@click.argument("ref", shell_complete=complete_refs)
@click.argument("tags", nargs=-1, required=True, metavar="TAG...", shell_complete=complete_tags)
@as_json
@click.pass_obj
def command(setup: Setup, ref: str, tags: tuple[str, ...], as_json: bool) -> None:
    """Give a session tags, in the archive only.

    backscroll list --tag TAG and backscroll search tag:TAG find it by them.

    Example:

        backscroll tag 1 flaky ci
    """
    change(setup, ref, lambda history, known: history.tag_session(known, tags), as_json=as_json)
