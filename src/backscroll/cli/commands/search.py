"""``backscroll search``: find the sessions where something was said."""

import sys
from typing import Any

import click

from backscroll.cli.hints import welcome_lines
from backscroll.cli.options import make_query_filters, message_filters, read_options, sync_before_reading
from backscroll.cli.progress import ProgressBar
from backscroll.cli.setup import Setup
from backscroll.cli.terminal import color_option, detect_screen

__all__ = ["command"]

_WIDE = 300  # columns, where no terminal says how many there are


# -word is a word not wanted, be it -help
@click.command("search", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, required=True)
@click.option("--exact", is_flag=True, help="The words are a substring, punctuation included.")
@click.option("--regex", is_flag=True, help="The words are a regular expression.")
@click.option(
    "--by",
    type=click.Choice(["session", "message"]),
    default="session",
    show_default=True,
    help="The best of each session, or each message for itself.",
)
@click.option("--limit", default=20, show_default=True, help="How many to show, at most 1000.")
@click.option("--offset", default=0, show_default=True, help="How many to pass over.")
@click.option("--context", default=2, show_default=True, help="Lines to show around a match.")
@message_filters
@color_option
@read_options
@click.pass_obj
def command(
    setup: Setup,
    /,
    words: tuple[str, ...],
    exact: bool,
    regex: bool,
    by: str,
    limit: int,
    offset: int,
    context: int,
    color: Any,
    as_json: bool,
    no_sync: bool,
    **options: Any,
) -> None:
    """Find the sessions where something was said.

    Words, "phrases", -not, OR, prefix*, and role: source: workspace: tool: model: file: branch: since: until:
    tag: is:error is:edit is:gone is:starred has:thinking has:edits.

    Example:

        backscroll search flaky test since:2026-10
    """
    if unknown := [word for word in words if word.startswith("--")]:
        raise click.NoSuchOption(unknown[0])
    if exact and regex:
        raise click.UsageError("--exact and --regex are two different things; give one of them")
    asked = " ".join(words)
    # A sign by itself is no word, and is looked for as it stands.
    exact = exact or bool(not regex and asked.strip() and not any(map(str.isalnum, asked)))
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        with ProgressBar("Looking at every message, newest first") as bar:
            found = history.search_sessions(
                asked,
                limit=limit,
                offset=offset,
                by="message" if by == "message" else "session",
                context=max(context, 0),
                pattern="exact" if exact else "regex" if regex else "words",
                filters=make_query_filters(options),
                since=options["since"],
                until=options["until"],
                progress=bar.step,
            )
        is_empty = not found.data and not history.list_sessions(limit=1).data
        welcome = list(welcome_lines(history, no_sync=no_sync)) if is_empty else []
        if history.is_index_behind():
            click.echo("Not every session is in the index yet; backscroll sync completes it.", err=True)
    if as_json:
        from backscroll.render.json import encode_json, search_document  # as below, only when asked for

        sys.stdout.buffer.write(encode_json(search_document(found)))
        return
    if is_empty:
        click.echo("\n".join(welcome))
        return
    if not found.data:
        total = found.total or found.total_at_least
        click.echo(f"That is past the last find; there are {total:,}." if total else "Nothing was found.")
    if found.is_relaxed and found.data:
        click.echo("No message has all of these words; these have the most.", err=True)
    if (found.is_relaxed or not found.data) and not (exact or regex):
        _tell_misspelled(asked)
    from backscroll.render.search_results import match_lines

    out = detect_screen(color)
    out.write(match_lines(found, is_coloured=out.is_coloured, width=out.width or _WIDE))
    if found.is_cut_short:
        click.echo("Time ran out before all was looked at; a longer pattern is found faster.", err=True)


def _tell_misspelled(asked: str) -> None:
    from backscroll.index.query.parser import invalid_filters

    for item in invalid_filters(asked):
        name, _, value = item.partition(":")
        click.echo(f"{name}: cannot be {value!r}; {item} was searched for as words.", err=True)
