"""``backscroll search`` and ``recall``: find sessions by a query, or by a task."""

from itertools import chain
from typing import Any

import click

import backscroll.history  # loads the redactor on first use
from backscroll.cli.messages import command_hint, welcome_lines
from backscroll.cli.options import (
    QueryCommand,
    filter_options,
    keep_secrets_option,
    page_options,
    read_options,
    sync_before_reading,
)
from backscroll.cli.output import color_option, detect_screen, write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.documents import recall_document, search_document
from backscroll.filters import query_filters
from backscroll.model.search import has_words
from backscroll.render.search import match_footer, match_lines, recall_lines
from backscroll.render.terminal_text import wrap

DEFAULT_WIDTH = 300  # columns, if not a terminal
WANTED_SESSIONS = 200  # to search, during the first sync


# -h is a word here, unless it is the only argument.
@click.command("search", cls=QueryCommand, context_settings={"help_option_names": ["--help"]})
@click.argument("words", nargs=-1, required=True)
@click.option("--exact", is_flag=True, help="Search for the words as one string, including punctuation.")
@click.option("--regex", is_flag=True, help="Search for a regular expression.")
@click.option(
    "-i",
    "--ignore-case",
    is_flag=True,
    help="Ignore case with --exact or --regex. A word search always does.",
)
@click.option(
    "--by",
    type=click.Choice(["session", "message"]),
    default="session",
    show_default=True,
    help="Show the best match of each session, or every matching message.",
)
@page_options
@click.option(
    "--context",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Lines to show around each match.",
)
@click.option("--explain", is_flag=True, help="Print each score and, for several words, its parts.")
@filter_options(of_messages=("text", "date"))
@color_option
@read_options
@click.pass_obj
def search(
    setup: Setup,
    /,
    words: tuple[str, ...],
    exact: bool,
    regex: bool,
    ignore_case: bool,
    by: str,
    limit: int,
    offset: int,
    context: int,
    explain: bool,
    color: Any,
    as_json: bool,
    **options: Any,
) -> None:
    """Search all sessions.

    In a pipe, prints only the matches, with a blank line between them. --json is easier to parse.

    \b
    Query syntax:
      flaky test           both words, in any order
      "flaky test"         the phrase
      flaky -test          the first word, in sessions without the second
                           (with --by message: in messages without it)
      flaky NOT test       the same
      flaky OR slow        either word
      pars*                words with this prefix
      role:user            filters: role, source, workspace, tool, model, file,
                           branch, since, until, tag
      is:error             also is:edit, is:gone, is:starred
      has:edits            also has:thinking

    \b
    Examples:
      backscroll search flaky test since:2026-10
      backscroll search --exact 'fold=0)'
      backscroll search --regex 'E\\d{4}' --by message
    """
    if exact and regex:
        raise click.UsageError("--exact and --regex cannot be combined.")
    query = " ".join(words)
    # The index contains only words: punctuation alone needs an exact search.
    is_punctuation = bool(not exact and not regex and query.strip() and not has_words(query))
    exact = exact or is_punctuation
    with setup.history() as history:
        sync_before_reading(history, wanted_sessions=WANTED_SESSIONS, for_search=True)
        with ProgressBar("Searching, newest messages first") as bar:
            found = history.search_sessions(
                query,
                limit=limit,
                offset=offset,
                by="message" if by == "message" else "session",
                context=max(context, 0),
                pattern="exact" if exact else "regex" if regex else "words",
                ignore_case=ignore_case,
                filters=query_filters(options),
                since=options["since"],
                until=options["until"],
                progress=bar.step,
            )
        is_empty = not found.data and not history.list_sessions(limit=1).data
        welcome = list(welcome_lines(history, no_sync=setup.no_sync)) if is_empty else []
        if history.is_index_pending():
            click.echo(
                f"Some sessions are not indexed yet. Run '{command_hint('sync')}' to index them.", err=True
            )
    invalid_filters = [
        f"{invalid.text!r} is not a valid filter; searched for it as text."
        for invalid in ([] if exact or regex else history.invalid_filters(query))
        # An unknown name may be a word with a colon: it is mentioned only if the query did not match.
        if invalid.similar_name is None or found.is_relaxed or not found.data
    ]
    if as_json:
        for note in invalid_filters:
            click.echo(note, err=True)
        write_json(search_document(found))
        return
    screen = detect_screen(color)
    if is_empty:
        screen.write_notice(welcome)
        return
    if not found.data:
        count = found.known_row_count
        screen.write_notice([f"No results on this page ({count:,} in total)." if count else "No results."])
        if is_punctuation:
            screen.write_notice(
                [
                    "The query contains no words; searched for it as exact text.",
                    f"Example of a query with words: {command_hint('search flaky test')}",
                ]
            )
    notes: list[str] = []
    if found.is_relaxed and found.data:
        notes.append("No message contains all words. Partial matches, best first:")
    notes += invalid_filters
    lines = match_lines(
        found, is_colored=screen.is_colored, width=screen.width or DEFAULT_WIDTH, with_ranks=explain
    )
    if screen.width is not None:
        footer = ["", match_footer(found)] if found.data else []
        screen.page(chain(notes, lines, footer))  # in the pager, notes on standard error are not visible
    else:
        for note in notes:
            click.echo(note, err=True)
        screen.write(lines)
        if found.data and (found.has_more or found.offset):
            click.echo(match_footer(found), err=True)
    if found.is_cut_short:
        click.echo("Time limit reached: results may be missing. A longer pattern is faster.", err=True)


@click.command("recall")
@click.argument("task", nargs=-1, required=True)
@filter_options(only="workspace")
@click.option(
    "--tokens",
    default=1500,
    show_default=True,
    type=click.IntRange(200, 20_000),
    help="Maximum length in tokens, estimated as four characters each.",
)
@keep_secrets_option
@read_options
@click.pass_obj
def recall(
    setup: Setup, task: tuple[str, ...], workspace: str | None, tokens: int, keep_secrets: bool, as_json: bool
) -> None:
    """Find earlier sessions relevant to a task.

    Describe the task in your own words; there is no query syntax. Prints the relevant requests, answers and
    results of each session.

    \b
    Examples:
      backscroll recall why did we drop the cache
    """
    text = " ".join(task)
    if not text.strip():
        raise click.UsageError("The task is empty. Describe it in a few words.")
    with setup.history() as history:
        sync_before_reading(history)
        found = history.recall(
            text,
            workspace=workspace,
            token_budget=tokens,
            redactor=None if keep_secrets else backscroll.history.Redactor(),
        )
        is_empty = not found.sessions and not history.list_sessions(limit=1).data
        welcome = list(welcome_lines(history, no_sync=setup.no_sync)) if is_empty else []
    if as_json:
        write_json(recall_document(found))
        return
    screen = detect_screen("auto")
    if not found.sessions:
        screen.write_notice(welcome or ["No relevant sessions found."])
    lines = recall_lines(found)
    width = screen.width
    screen.page(lines if width is None else (part for line in lines for part in wrap(line, width)))
