"""``backscroll export`` and ``secrets``: write sessions to files, find the secrets in them."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from backscroll.cli.options import (
    EVERYTHING_HELP,
    complete_refs,
    filter_options,
    has_filters,
    read_options,
    subagents_option,
    sync_before_reading,
    sync_options,
)
from backscroll.cli.output import write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.filters import make_filter
from backscroll.history import Redactor
from backscroll.history.history import History
from backscroll.model.export import FORMATS, SECRET_CATEGORIES, Format, SecretCategory, format_of_file
from backscroll.model.session import SessionSummary
from backscroll.model.text import pluralize, sanitize
from backscroll.render.humanize import short_ref
from backscroll.render.json import secrets_document

_STANDARD_OUTPUT = Path("-")
MAX_LOCATIONS = 5  # of a secret that export replaced
MAX_FOUND_LOCATIONS = 3  # of a secret that secrets found


class _ExportCommand(click.Command):
    """Command with an option whose value can be omitted."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_with_redact_value(args)))


def _with_redact_value(arguments: list[str]) -> Iterator[str]:
    """Give a bare ``--redact`` its value. The next argument is a ref unless it names categories."""
    remaining = iter(enumerate(arguments, start=1))
    for number, argument in remaining:
        if argument == "--":
            yield from arguments[number - 1 :]
            return
        if argument != "--redact":
            yield argument
            continue
        following = arguments[number] if number < len(arguments) else "-"
        names = following.split(",")
        is_value = any(name in SECRET_CATEGORIES for name in names) or "--all" in arguments
        if is_value and not following.startswith("-"):
            next(remaining)
            yield f"--redact={following}"
        else:
            yield "--redact=secrets"


class _Categories(click.ParamType[tuple[SecretCategory, ...]]):
    """Comma-separated list of categories to redact. Secrets are always redacted."""

    name = "categories"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[SecretCategory, ...]:
        if isinstance(value, tuple):
            return value
        names = value.split(",")
        unknown = next((name for name in names if name not in SECRET_CATEGORIES), None)
        if unknown is not None:
            raise click.UsageError(f"Cannot redact {unknown!r}. Use {', '.join(SECRET_CATEGORIES)}.", ctx)
        return tuple(name for name in SECRET_CATEGORIES if name in names or name == "secrets")


@click.command("export", cls=_ExportCommand)
@click.argument("refs", nargs=-1, metavar="[REF]...", shell_complete=complete_refs)
@click.option("--all", "every", is_flag=True, help="Export all sessions that match the filters below.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(tuple(FORMATS)),
    help="Output format. Default: from the extension of PATH, else md.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="PATH",
    help="Output file; for several sessions, output folder. '-' is standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--missing", is_flag=True, help="Skip sessions that are already in the output folder.")
@click.option(
    "--redact",
    "categories",
    type=_Categories(),
    metavar="[KINDS]",
    help="Replace keys, tokens and passwords with placeholders. --redact=emails,paths also replaces e-mail"
    " addresses and home folders.",
)
@click.option("--everything", is_flag=True, help=EVERYTHING_HELP)
@filter_options()
@subagents_option
@sync_options
@click.pass_obj
def export(
    setup: Setup,
    /,
    refs: tuple[str, ...],
    every: bool,
    format_: Format | None,
    output: Path | None,
    force: bool,
    missing: bool,
    categories: tuple[SecretCategory, ...] | None,
    everything: bool,
    **options: Any,
) -> None:
    """Export sessions to files, or one session to standard output.

    A single session is written to standard output unless --output is given. Several sessions are written to a
    folder, one file each; the HTML format adds an index page. The parent folder of PATH must exist. To
    continue an interrupted export, use --missing. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll export 1 -o session.md
      backscroll export 1 --redact
      backscroll export --all --workspace tideline --format html -o tideline
    """
    if output == _STANDARD_OUTPUT:
        output = None
    if bool(refs) == every:
        raise click.UsageError(f"Pass the sessions to export, or --all{', not both' if every else ''}.")
    if refs and has_filters(options):
        raise click.UsageError(
            "Filters select the sessions of --all. Pass either refs, or --all and filters."
        )
    if force and missing:
        raise click.UsageError("--force and --missing cannot be combined.")
    is_single = len(refs) == 1 and not _is_folder(output)
    format_ = format_ or (_format_of(output) if is_single else "md")
    redactor = Redactor(categories) if categories else None
    with setup.history() as history:
        sync_before_reading(history)
        if is_single:
            summary = history.find(refs[0])
            _export_one(history, summary, format_, output, redactor, everything=everything, force=force)
        else:
            filter_ = make_filter(options, with_subagents=options["subagents"])
            summaries = history.all_sessions(filter_) if every else _find_all(history, refs)
            flags = {"everything": everything, "force": force, "missing": missing}
            _export_many(history, summaries, format_, output, redactor, **flags)
    if redactor is not None:
        _report_redactions(redactor)


def _is_folder(output: Path | None) -> bool:
    return output is not None and (output.is_dir() or str(output).endswith(("/", "\\")))


def _find_all(history: History, refs: Iterable[str]) -> list[SessionSummary]:
    """Return the sessions without duplicates."""
    found = map(history.find, refs)
    return list({summary.ref: summary for summary in found}.values())


def _export_one(
    history: History,
    summary: SessionSummary,
    format_: Format,
    output: Path | None,
    redactor: Redactor | None,
    *,
    everything: bool,
    force: bool,
) -> None:
    pieces = history.exports.stream(summary, format_, redactor=redactor, everything=everything)
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece.encode("utf-8", "replace"))
        sys.stdout.flush()
        return
    click.echo(f"Wrote {history.exports.write_file(pieces, output, force=force)}", err=True)


def _format_of(output: Path | None) -> Format:
    """Return the format for a file's suffix; Markdown without a file or suffix."""
    if output is None or not output.suffix:
        return "md"
    format_ = format_of_file(output.name)
    if format_ is None:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise click.UsageError(
            f"Unknown suffix {output.suffix!r} (known: {known}). Use --format to choose a format."
        )
    return format_


def _export_many(
    history: History,
    summaries: list[SessionSummary],
    format_: Format,
    output: Path | None,
    redactor: Redactor | None,
    *,
    everything: bool,
    force: bool,
    missing: bool,
) -> None:
    if output is None:
        raise click.UsageError("Several sessions need an output folder: pass -o FOLDER.")
    if output.is_file():
        raise click.UsageError(f"{output} is a file. Several sessions need an output folder.")
    if format_of_file(output.name) is not None and not _is_folder(output):
        raise click.UsageError(
            f"{output} looks like a file name. Several sessions need an output folder;"
            f" write {output}/ to use this name."
        )
    if not summaries:
        click.echo("No sessions match. Nothing was written.", err=True)
        return
    with ProgressBar("Exporting") as bar:
        exported = history.exports.write_files(
            summaries,
            output,
            format_,
            redactor=redactor,
            everything=everything,
            force=force,
            missing=missing,
            progress=bar.step,
        )
    skipped = f" ({exported.kept:,} already there)" if exported.kept else ""
    written = pluralize(len(exported.files) - exported.kept, "session")
    click.echo(f"Wrote {written} to {output}{skipped}", err=True)
    if exported.index is not None:
        click.echo(f"  index page: {exported.index}", err=True)


def _report_redactions(redactor: Redactor) -> None:
    """Print what was replaced and where, but not the secrets."""
    secrets = redactor.found_secrets()
    if not secrets:
        click.echo("Found nothing to redact. Check the output before you share it.", err=True)
        return
    click.echo("Redacted, by session (message number):", err=True)
    for secret in secrets:
        positions: dict[str, list[str]] = {}
        for location in secret.locations[:MAX_LOCATIONS]:
            position = "header" if location.position is None else str(location.position)
            positions.setdefault(short_ref(location.ref), []).append(position)
        sessions = ", ".join(f"{ref} ({', '.join(found)})" for ref, found in positions.items())
        hidden = len(secret.locations) - MAX_LOCATIONS
        more = f" and {hidden:,} more" if hidden > 0 else ""
        times = f", {secret.count:,} times" if secret.count > 1 else ""
        click.echo(sanitize(f"  {secret.kind} #{secret.number}{times}: {sessions}{more}"), err=True)


@click.command("secrets")
@click.argument("refs", nargs=-1, metavar="[REF]...", shell_complete=complete_refs)
@click.option("--emails", is_flag=True, help="Also find e-mail addresses.")
@click.option("--paths", is_flag=True, help="Also find home folders, which contain a user name.")
@filter_options()
@read_options
@click.pass_obj
def secrets(
    setup: Setup, /, refs: tuple[str, ...], emails: bool, paths: bool, as_json: bool, **options: Any
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
        for location in secret.locations[:MAX_FOUND_LOCATIONS]:
            position = "header" if location.position is None else f"message {location.position}"
            click.echo(sanitize(f"    {location.ref}  {position}"))
        if len(secret.locations) > MAX_FOUND_LOCATIONS:
            click.echo(f"    … and {len(secret.locations) - MAX_FOUND_LOCATIONS:,} more")


def _count(summaries: list[SessionSummary]) -> str:
    agents = sum(summary.parent_ref is not None for summary in summaries)
    counts = {"session": len(summaries) - agents, "subagent": agents}
    return " and ".join(pluralize(count, noun) for noun, count in counts.items() if count)
