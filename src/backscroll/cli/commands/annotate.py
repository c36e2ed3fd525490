"""``backscroll tag``, ``untag``, ``tags``, ``star``, ``unstar``, ``note`` and ``rename``."""

import sys
from collections.abc import Callable, Iterable

import click

from backscroll.cli.messages import command_hint
from backscroll.cli.options import complete_refs, complete_tags, json_option, sync_before_reading
from backscroll.cli.output import write_json
from backscroll.cli.startup import Setup
from backscroll.documents import to_document
from backscroll.errors import SessionNotFoundError
from backscroll.history.history import History
from backscroll.model.session import SessionSummary
from backscroll.render.annotations import annotated_session_lines, change_lines, ignored_tag_lines, tag_lines

_ref = click.argument("ref", shell_complete=complete_refs)
_tags = click.argument("tags", nargs=-1, required=True, metavar="TAG...", shell_complete=complete_tags)


@click.command("tag")
@_ref
@_tags
@json_option
@click.pass_obj
def tag(setup: Setup, ref: str, tags: tuple[str, ...], as_json: bool) -> None:
    """Add tags to a session.

    Tags are stored in the archive only. Use 'list --tag TAG' and 'search tag:TAG' to find tagged sessions.
    'tags' lists all tags. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll tag 1 flaky ci
    """

    _annotate(
        setup,
        ref,
        lambda history, ref: history.annotations.tag(ref, tags),
        as_json=as_json,
        ignored=lambda before: ignored_tag_lines(before, add=tags),
    )


@click.command("untag")
@_ref
@_tags
@json_option
@click.pass_obj
def untag(setup: Setup, ref: str, tags: tuple[str, ...], as_json: bool) -> None:
    """Remove tags from a session.

    REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll untag 1 flaky
    """

    _annotate(
        setup,
        ref,
        lambda history, ref: history.annotations.tag(ref, remove=tags),
        as_json=as_json,
        ignored=lambda before: ignored_tag_lines(before, remove=tags),
    )


@click.command("tags")
@json_option
@click.pass_obj
def tags(setup: Setup, as_json: bool) -> None:
    """List all tags and how many sessions have each.

    In a pipe, tag and number are separated by a tab.

    \b
    Examples:
      backscroll tags
    """
    with setup.history() as history:
        counts = history.annotations.tags()
    if as_json:
        write_json({"data": [{"tag": tag, "session_count": count} for tag, count in counts.items()]})
        return
    if not counts:
        click.echo(f"No tags. Run '{command_hint('tag REF TAG')}' to add one.", err=True)
    for line in tag_lines(counts, is_terminal=sys.stdout.isatty()):
        click.echo(line)


@click.command("star")
@_ref
@click.option("--off", is_flag=True, help="Remove the star.")
@json_option
@click.pass_obj
def star(setup: Setup, ref: str, off: bool, as_json: bool) -> None:
    """Star a session.

    Stars are stored in the archive only. Use 'list --starred' and 'search is:starred' to find starred
    sessions. 'unstar' or --off removes the star. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll star 1
      backscroll unstar 1
    """
    _set_star(setup, ref, is_starred=not off, as_json=as_json)


@click.command("unstar")
@_ref
@json_option
@click.pass_obj
def unstar(setup: Setup, ref: str, as_json: bool) -> None:
    """Remove the star from a session.

    REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll unstar 1
    """
    _set_star(setup, ref, is_starred=False, as_json=as_json)


def _set_star(setup: Setup, ref: str, *, is_starred: bool, as_json: bool) -> None:
    _annotate(
        setup,
        ref,
        lambda history, ref: history.annotations.star(ref, is_starred),
        as_json=as_json,
        unchanged="The session already has a star." if is_starred else "The session has no star.",
    )


@click.command("note")
@_ref
@click.argument("text", required=False)
@click.option("--edit", type=int, metavar="N", help="Replace the text of note N with TEXT.")
@click.option("--delete", type=int, metavar="N", help="Delete note N.")
@json_option
@click.pass_obj
def note(
    setup: Setup, ref: str, text: str | None, edit: int | None, delete: int | None, as_json: bool
) -> None:
    """Add a note to a session, or show its notes.

    Without TEXT, the session's notes are shown. A session can have several notes. Notes are stored in the
    archive only, and 'search' finds them. REF: see 'backscroll show --help'.

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

    is_change = text is not None or delete is not None
    session = _annotate(setup, ref, apply, as_json=as_json, is_change=is_change)
    if not session.notes and not is_change and not as_json:
        click.echo("No notes.")


@click.command("rename")
@_ref
@click.argument("title", required=False)
@click.option("--reset", is_flag=True, help="Restore the tool's own title.")
@json_option
@click.pass_obj
def rename(setup: Setup, ref: str, title: str | None, reset: bool, as_json: bool) -> None:
    """Change the title of a session.

    The new title is stored in the archive only; the tool's files are not changed. 'search' finds the session
    by both titles. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll rename 1 "The night the clocks went back"
      backscroll rename 1 --reset
    """
    if (title is None) is not reset:
        raise click.UsageError("Pass either TITLE or --reset.")

    _annotate(
        setup,
        ref,
        lambda history, ref: history.annotations.rename(ref, title),
        as_json=as_json,
        unchanged="The session already has this title.",
    )


def _annotate(
    setup: Setup,
    ref: str,
    apply: Callable[[History, str], SessionSummary],
    *,
    as_json: bool,
    unchanged: str = "",
    ignored: Callable[[SessionSummary], Iterable[str]] = lambda _: (),
    is_change: bool = True,
) -> SessionSummary:
    """Change a session's annotations. Print what has changed, or `unchanged`, and the session.

    `ignored` returns lines about what did not have to be changed.

    Syncs only if the ref is unknown: a sync could change the list index that the user has just seen.
    """
    with setup.history() as history:
        find = history.find_to_change if is_change else history.find
        try:
            before = find(ref)
        except SessionNotFoundError:
            sync_before_reading(history)
            before = find(ref)
        after = apply(history, before.ref)
    if as_json:
        write_json(to_document(after))
        return after
    changes = [*change_lines(before, after), *ignored(before)] or ([unchanged] if unchanged else [])
    for line in (*changes, *annotated_session_lines(after)):
        click.echo(line)
    return after
