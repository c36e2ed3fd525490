"""Confirmation before a tool's files are changed, and recovery of an interrupted change."""

import sys

import click

from backscroll.errors import UsageError
from backscroll.history import History
from backscroll.model.text import sanitize

__all__ = ["confirm", "report_recovery"]


def confirm(question: str, *, yes: bool, has_dry_run: bool = True) -> None:
    """Ask at a terminal. Exits if the user declines. Raises `UsageError` without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        dry_run = ", or --dry-run to see the plan" if has_dry_run else ""
        raise UsageError(f"Not a terminal: pass --yes to confirm{dry_run}.")
    if not click.confirm(question, err=True):
        click.echo("Nothing was changed.", err=True)
        sys.exit(1)


def report_recovery(history: History) -> list[str]:
    """Roll back changes that a crash interrupted, and say so. Return their descriptions."""
    rolled_back = history.transfers.recover()
    for what in rolled_back:
        click.echo(sanitize(f"Rolled back a change that was interrupted: {what}"), err=True)
    return rolled_back
