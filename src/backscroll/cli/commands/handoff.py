"""``backscroll handoff``: print a summary of a session to paste into another assistant."""

import click

from backscroll.cli.options import complete_refs, keep_secrets_option, read_options, sync_before_reading
from backscroll.cli.output import write_json
from backscroll.cli.startup import Setup
from backscroll.history import Redactor
from backscroll.model.text import pluralize
from backscroll.render.handoff import handoff_document, handoff_lines


@click.command("handoff")
@click.argument("ref", shell_complete=complete_refs)
@click.option(
    "--tokens",
    default=2000,
    show_default=True,
    type=click.IntRange(min=100),
    help="Maximum length in tokens, estimated as four characters each.",
)
@keep_secrets_option
@read_options
@click.pass_obj
def command(setup: Setup, ref: str, tokens: int, keep_secrets: bool, as_json: bool, no_sync: bool) -> None:
    """Print a summary of a session to paste into another assistant.

    Prints the goal, decisions, files, commands, open items and last state of the session. They are
    extracted by rules on this machine: no model is used and nothing is sent.
    REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll handoff 1 --tokens 800
    """
    redactor = None if keep_secrets else Redactor()
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        handoff = history.resume.handoff(ref, tokens=tokens, redactor=redactor)
    if as_json:
        write_json(handoff_document(handoff))
        return
    for line in handoff_lines(handoff):
        click.echo(line)
    omitted = sum(section.left_out for section in handoff.sections)
    more = f"; {pluralize(omitted, 'item')} omitted to stay below --tokens" if omitted else ""
    click.echo(f"About {pluralize(handoff.tokens, 'token')} (estimated){more}.", err=True)
    if redactor is not None and (secrets := redactor.found_secrets()):
        click.echo(f"Replaced {pluralize(len(secrets), 'secret')} with placeholders.", err=True)
