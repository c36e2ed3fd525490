"""``backscroll secrets``: which keys and passwords a history holds, without showing them."""

import sys
from typing import Any

import click

from backscroll.cli.completion_values import complete_refs
from backscroll.cli.options import make_filter, read_options, session_filters, sync_before_reading
from backscroll.cli.progress import ProgressBar
from backscroll.cli.setup import Setup
from backscroll.model import SessionSummary
from backscroll.model.redaction import SecretCategory
from backscroll.model.sanitize import sanitize
from backscroll.render.json import encode_json, secrets_document
from backscroll.render.terminal.humanize import pluralize

__all__ = ["command"]

_PLACES = 3  # of each that are named


@click.command("secrets")
@click.argument("refs", nargs=-1, metavar="[REF]...", shell_complete=complete_refs)
@click.option("--emails", is_flag=True, help="E-mail addresses as well.")
@click.option("--paths", is_flag=True, help="Home folders, which tell a name, as well.")
@session_filters
@read_options
@click.pass_obj
def command(
    setup: Setup,
    /,
    refs: tuple[str, ...],
    emails: bool,
    paths: bool,
    as_json: bool,
    no_sync: bool,
    **options: Any,
) -> None:
    """List the keys, tokens and passwords in sessions, without showing them.

    Subagents are looked at too. Without a REF, everything that fits the options is.

    Example:

        backscroll secrets --workspace tideline
    """
    kinds: list[SecretCategory] = ["secrets"]
    kinds += ["emails"] if emails else []
    kinds += ["paths"] if paths else []
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        wanted = make_filter(options | {"subagents": True})
        own = make_filter(options)
        summaries = [history.find(ref, own) for ref in refs] if refs else history.every_session(wanted)
        with ProgressBar("Looking for secrets") as bar:
            found = history.find_secrets(summaries, kinds=kinds, progress=bar.step)
    if as_json:
        sys.stdout.buffer.write(encode_json(secrets_document(found)))
        return
    if not summaries:
        click.echo("No session fits.")
        return
    if not found:
        click.echo(f"No secret was found in {_counted(summaries)}.")
        return
    for one in found:
        times = "once" if one.count == 1 else f"{one.count:,} times"
        click.echo(sanitize(f"{one.kind} #{one.number}  {one.hint}  {times}"))
        for place in one.locations[:_PLACES]:
            where = "title, preview or folder" if place.position is None else f"message {place.position}"
            click.echo(sanitize(f"    {place.ref}  {where}"))
        if len(one.locations) > _PLACES:
            click.echo(f"    … and {len(one.locations) - _PLACES:,} more places")


def _counted(summaries: list[SessionSummary]) -> str:
    agents = sum(summary.parent_ref is not None for summary in summaries)
    numbers = {"session": len(summaries) - agents, "subagent": agents}
    return " and ".join(pluralize(number, what) for what, number in numbers.items() if number)
