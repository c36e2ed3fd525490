"""``backscroll recall``: find earlier sessions relevant to a task."""

import click

from backscroll.cli.messages import welcome_lines
from backscroll.cli.options import filter_options, keep_secrets_option, read_options, sync_before_reading
from backscroll.cli.output import detect_screen, write_json
from backscroll.cli.startup import Setup
from backscroll.documents import recall_document
from backscroll.history import Redactor
from backscroll.render.search import recall_lines
from backscroll.render.terminal.text import wrap


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
def command(
    setup: Setup,
    task: tuple[str, ...],
    workspace: str | None,
    tokens: int,
    keep_secrets: bool,
    as_json: bool,
    no_sync: bool,
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
        if not no_sync:
            sync_before_reading(history)
        found = history.recall(
            text,
            workspace=workspace,
            token_budget=tokens,
            redactor=None if keep_secrets else Redactor(),
        )
        is_empty = not found.sessions and not history.list_sessions(limit=1).data
        welcome = list(welcome_lines(history, no_sync=no_sync)) if is_empty else []
    if as_json:
        write_json(recall_document(found))
        return
    screen = detect_screen("auto")
    if not found.sessions:
        screen.write_notice(welcome or ["No relevant sessions found."])
    lines = recall_lines(found)
    width = screen.width
    screen.page(lines if width is None else (part for line in lines for part in wrap(line, width)))
