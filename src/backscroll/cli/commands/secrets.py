"""``backscroll secrets``: find keys and passwords in sessions, without printing them."""

from typing import Any

import click

from backscroll.cli.options import (
    complete_refs,
    filter_options,
    has_filters,
    read_options,
    sync_before_reading,
)
from backscroll.cli.output import write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.documents import make_filter
from backscroll.model.export import SecretCategory
from backscroll.model.session import SessionSummary
from backscroll.model.text import pluralize, sanitize
from backscroll.render.json import secrets_document

MAX_LOCATIONS = 3  # locations printed per secret


@click.command("secrets")
@click.argument("refs", nargs=-1, metavar="[REF]...", shell_complete=complete_refs)
@click.option("--emails", is_flag=True, help="Also find e-mail addresses.")
@click.option("--paths", is_flag=True, help="Also find home folders, which contain a user name.")
@filter_options()
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
    """Find keys, tokens and passwords in sessions.

    Lists where they are without printing them. Searches the given sessions, or all sessions that match the
    filters. Subagents are always included. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll secrets
      backscroll secrets --workspace tideline --emails
    """
    if refs and has_filters(options):
        raise click.UsageError("Pass either refs or filters.")
    categories: list[SecretCategory] = ["secrets"]
    categories += ["emails"] if emails else []
    categories += ["paths"] if paths else []
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        if refs:
            summaries = [history.find(ref) for ref in refs]
        else:
            summaries = history.all_sessions(make_filter(options, with_subagents=True))
        with ProgressBar("Searching for secrets") as bar:
            secrets = history.exports.find_secrets(summaries, kinds=categories, progress=bar.step)
    if as_json:
        write_json(secrets_document(secrets))
        return
    if not summaries:
        click.echo("No sessions match.")
        return
    if not secrets:
        click.echo(f"No secrets found in {_count(summaries)}.")
        return
    for secret in secrets:
        times = "once" if secret.count == 1 else f"{secret.count:,} times"
        click.echo(sanitize(f"{secret.kind} #{secret.number}  {secret.hint}  {times}"))
        for location in secret.locations[:MAX_LOCATIONS]:
            position = "header" if location.position is None else f"message {location.position}"
            click.echo(sanitize(f"    {location.ref}  {position}"))
        if len(secret.locations) > MAX_LOCATIONS:
            click.echo(f"    … and {len(secret.locations) - MAX_LOCATIONS:,} more")


def _count(summaries: list[SessionSummary]) -> str:
    agents = sum(summary.parent_ref is not None for summary in summaries)
    counts = {"session": len(summaries) - agents, "subagent": agents}
    return " and ".join(pluralize(count, noun) for noun, count in counts.items() if count)
