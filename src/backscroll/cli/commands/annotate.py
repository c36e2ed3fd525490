"""``backscroll tag``, ``untag``, ``star``, ``note`` and ``rename``: annotations in the archive."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from backscroll.cli.completion_values import complete_refs, complete_tags
from backscroll.cli.global_options import Setup
from backscroll.cli.json_output import write_json
from backscroll.cli.options import sync_before_reading
from backscroll.errors import SessionNotFoundError
from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.render.annotations import annotated_session_lines
from backscroll.render.json import summary_document

__all__ = ["note", "rename", "star", "tag", "untag"]

F = TypeVar("F", bound=Callable[..., Any])


def _ref_argument(command: F) -> F:
    return click.argument("ref", shell_complete=complete_refs)(command)


def _tags_argument(command: F) -> F:
    decorate = click.argument("tags", nargs=-1, required=True, metavar="TAG...", shell_complete=complete_tags)
    return decorate(command)


def _json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


@click.command("tag")
@_ref_argument
@_tags_argument
@_json_option
@click.pass_obj
def tag(setup: Setup, ref: str, tags: tuple[str, ...], as_json: bool) -> None:
    """Add tags to a session.

    Tags are stored in the archive only. Use 'list --tag TAG' and 'search tag:TAG' to find tagged sessions.

    \b
    Examples:
      backscroll tag 1 flaky ci
    """
    _annotate(setup, ref, lambda history, ref: history.annotations.tag(ref, tags), as_json=as_json)


@click.command("untag")
@_ref_argument
@_tags_argument
@_json_option
@click.pass_obj
def untag(setup: Setup, ref: str, tags: tuple[str, ...], as_json: bool) -> None:
    """Remove tags from a session.

    \b
    Examples:
      backscroll untag 1 flaky
    """
    _annotate(setup, ref, lambda history, ref: history.annotations.tag(ref, remove=tags), as_json=as_json)


@click.command("star")
@_ref_argument
@click.option("--off", is_flag=True, help="Remove the star.")
@_json_option
@click.pass_obj
def star(setup: Setup, ref: str, off: bool, as_json: bool) -> None:
    """Star a session.

    Stars are stored in the archive only. Use 'list --starred' and 'search is:starred' to find starred
    sessions.

    \b
    Examples:
      backscroll star 1
      backscroll star 1 --off
    """
    _annotate(setup, ref, lambda history, ref: history.annotations.star(ref, not off), as_json=as_json)


@click.command("note")
@_ref_argument
@click.argument("text", required=False)
@click.option("--edit", type=int, metavar="N", help="Replace the text of note N with TEXT.")
@click.option("--delete", type=int, metavar="N", help="Delete note N.")
@_json_option
@click.pass_obj
def note(
    setup: Setup, ref: str, text: str | None, edit: int | None, delete: int | None, as_json: bool
) -> None:
    """Add a note to a session, or show its notes.

    Without TEXT, the session's notes are shown. A session can have several notes. Notes are stored in the
    archive only, and 'search' finds them.

    \b
    Examples:
      backscroll note 1 "the fix is in the second half"
      backscroll note 1 --delete 2
    """
    if delete is not None and (text is not None or edit is not None):
        raise click.UsageError("--delete cannot be combined with TEXT or --edit.")
    if edit is not None and text is None:
        raise click.UsageError("--edit requires TEXT.")

    def apply(history: History, ref: str) -> SessionSummary:
        if delete is not None:
            return history.annotations.edit_note(ref, delete, None)
        if edit is not None:
            return history.annotations.edit_note(ref, edit, text)
        return history.find(ref) if text is None else history.annotations.add_note(ref, text)

    _annotate(setup, ref, apply, as_json=as_json)


@click.command("rename")
@_ref_argument
@click.argument("title", required=False)
@click.option("--reset", is_flag=True, help="Restore the tool's own title.")
@_json_option
@click.pass_obj
def rename(setup: Setup, ref: str, title: str | None, reset: bool, as_json: bool) -> None:
    """Change the title of a session.

    The new title is stored in the archive only; the tool's files are not changed. 'search' finds the session
    by both titles.

    \b
    Examples:
      backscroll rename 1 "The night the clocks went back"
      backscroll rename 1 --reset
    """
    if (title is None) is not reset:
        raise click.UsageError("Pass either TITLE or --reset.")
    _annotate(setup, ref, lambda history, ref: history.annotations.rename(ref, title), as_json=as_json)


def _annotate(
    setup: Setup, ref: str, apply: Callable[[History, str], SessionSummary], *, as_json: bool
) -> None:
    """Change a session's annotations and print the result.

    Syncs only if the ref is unknown: a sync could change the list index that the user has just seen.
    """
    with setup.history() as history:
        try:
            full_ref = history.find(ref).ref
        except SessionNotFoundError:
            sync_before_reading(history)
            full_ref = history.find(ref).ref
        summary = apply(history, full_ref)
    if as_json:
        write_json(summary_document(summary))
        return
    for line in annotated_session_lines(summary):
        click.echo(line)
