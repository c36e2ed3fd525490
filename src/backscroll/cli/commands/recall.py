"""``backscroll recall``: what earlier sessions have to say about a task."""

import sys

import click

from backscroll.cli.completion_values import complete_names
from backscroll.cli.options import read_options, sync_before_reading
from backscroll.cli.setup import Setup
from backscroll.redact.redactor import Redactor
from backscroll.render.json import encode_json
from backscroll.render.recall import recall_document, recall_lines

__all__ = ["command"]


@click.command("recall")
@click.argument("task", nargs=-1, required=True)
@click.option(
    "--workspace",
    shell_complete=complete_names("workspace"),
    help="Only of this workspace: its path, name, path's end or host.",
)
@click.option(
    "--tokens",
    default=1500,
    show_default=True,
    type=click.IntRange(200, 20_000),
    help="How long it may be.",
)
@click.option("--keep-secrets", is_flag=True, help="Do not replace keys, tokens and passwords.")
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
    """Find what earlier sessions have to say about a task.

    The task is written as it comes to mind; nothing in it is syntax. Of each session that bears on it: what
    was asked, what was said, what came of it. Tokens are estimated, as four characters each.

    Example:

        backscroll recall why did we drop the cache
    """
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        found = history.recall(
            " ".join(task),
            workspace=workspace,
            token_budget=tokens,
            redactor=None if keep_secrets else Redactor(),
        )
    if as_json:
        sys.stdout.buffer.write(encode_json(recall_document(found)))
        return
    if not found.sessions:
        click.echo("No earlier session has to do with it.")
    for line in recall_lines(found):
        click.echo(line)
