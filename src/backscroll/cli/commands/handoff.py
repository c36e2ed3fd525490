"""``backscroll handoff``: a session in short, to paste into any assistant."""

import sys

import click

from backscroll.cli.completion_values import complete_refs
from backscroll.cli.options import read_options, sync_before_reading
from backscroll.cli.setup import Setup
from backscroll.redact.redactor import Redactor
from backscroll.render.handoff import handoff_document, handoff_lines
from backscroll.render.json import encode_json

__all__ = ["command"]


@click.command("handoff")
@click.argument("ref", shell_complete=complete_refs)
@click.option(
    "--tokens", default=2000, show_default=True, type=click.IntRange(min=100), help="How long it may be."
)
@click.option("--keep-secrets", is_flag=True, help="Do not replace keys, tokens and passwords.")
@read_options
@click.pass_obj
def command(setup: Setup, ref: str, tokens: int, keep_secrets: bool, as_json: bool, no_sync: bool) -> None:
    """Print a session in short, to paste into any assistant.

    Goal, decisions, files, commands, open ends and last state, drawn from the session by rules: no model is
    asked, nothing is sent. Tokens are estimated, as four characters each.

    Example:

        backscroll handoff 1 --tokens 800
    """
    redactor = None if keep_secrets else Redactor()
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        briefing = history.briefing(ref, tokens=tokens, redactor=redactor)
    if as_json:
        sys.stdout.buffer.write(encode_json(handoff_document(briefing)))
        return
    for line in handoff_lines(briefing):
        click.echo(line)
    left_out = sum(section.left_out for section in briefing.sections)
    more = f"; {left_out:,} points had no room" if left_out else ""
    click.echo(f"About {briefing.tokens:,} tokens, estimated{more}.", err=True)
    if redactor is not None and (replaced := redactor.found_secrets()):
        click.echo(f"Replaced {len(replaced):,} secrets by placeholders.", err=True)
