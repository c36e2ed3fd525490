"""``backscroll list``: sessions, newest first."""

import sys
from typing import Any

import click

from backscroll.cli.app import Setup
from backscroll.cli.options import as_filter, bring_up_to_date, filters, reading
from backscroll.cli.welcome import welcome_lines
from backscroll.render.documents import encoded, page_document
from backscroll.render.text import session_lines

__all__ = ["command"]

_EMPTY = "The archive is empty. backscroll sync reads what there is."


@click.command("list")
@click.option("--limit", default=20, show_default=True, help="How many to show, at most 1000.")
@click.option("--offset", default=0, show_default=True, help="How many to pass over.")
@filters
@reading
@click.pass_obj
def command(setup: Setup, /, limit: int, offset: int, as_json: bool, no_sync: bool, **options: Any) -> None:
    """List sessions, newest first.

    Example:

        backscroll list --workspace tideline --since 2026-10-01
    """
    with setup.history() as history:
        if not no_sync:
            bring_up_to_date(history)
        page = history.list_sessions(as_filter(options), limit=limit, offset=offset)
        is_empty = not page.data and not history.list_sessions(limit=1).data
        welcome = list(welcome_lines(history)) if is_empty and not no_sync else [_EMPTY]
    if as_json:
        sys.stdout.buffer.write(encoded(page_document(page)))
        return
    if is_empty:
        click.echo("\n".join(welcome))
        return
    if not page.data:
        click.echo("No session fits.")
        return
    for line in session_lines(page):
        click.echo(line)
