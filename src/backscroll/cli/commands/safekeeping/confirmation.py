"""Confirmation before a tool's files are changed."""

import sys

import click

from backscroll.errors import UsageError

__all__ = ["confirm"]


def confirm(question: str, *, yes: bool) -> None:
    """Ask at a terminal. Exits if the user declines. Raises `UsageError` without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Not a terminal: pass --yes to confirm, or --dry-run to see the plan.")
    if not click.confirm(question, err=True):
        click.echo("Nothing was changed.", err=True)
        sys.exit(1)
