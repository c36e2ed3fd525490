"""What the commands that add to a session share."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from backscroll.cli.app import Setup
from backscroll.cli.options import bring_up_to_date
from backscroll.errors import SessionNotFoundError
from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.render.annotations import annotated_session_lines
from backscroll.render.json import encode_json, summary_document

__all__ = ["as_json", "change"]

F = TypeVar("F", bound=Callable[..., Any])


def as_json(command: F) -> F:
    """The session as it is afterwards, for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def change(setup: Setup, ref: str, do: Callable[[History, str], SessionSummary], *, as_json: bool) -> None:
    """Add something to a session, and print what it has then.

    Nothing is read first, so that a place in the list is the one that was seen; only a session that is not
    known yet is looked for.
    """
    with setup.history() as history:
        try:
            known = history.find(ref).ref
        except SessionNotFoundError:
            bring_up_to_date(history)
            known = history.find(ref).ref
        summary = do(history, known)
    if as_json:
        sys.stdout.buffer.write(encode_json(summary_document(summary)))
        return
    for line in annotated_session_lines(summary):
        click.echo(line)
