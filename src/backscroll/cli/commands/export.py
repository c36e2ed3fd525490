"""``backscroll export``: sessions as files."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from backscroll.cli.completion_values import complete_refs
from backscroll.cli.options import make_filter, session_filters, sync_before_reading
from backscroll.cli.progress import ProgressBar
from backscroll.cli.setup import Setup
from backscroll.export.write_files import write_one
from backscroll.history import History
from backscroll.model import Filter, SessionSummary
from backscroll.model.export_format import FORMATS, Format
from backscroll.model.redaction import SECRET_CATEGORIES, SecretCategory
from backscroll.model.sanitize import sanitize
from backscroll.redact.redactor import Redactor

__all__ = ["command"]

_PLACES = 5  # of each secret that are named
_ENDINGS: dict[str, Format] = {
    **{f".{one}": one for one in FORMATS},
    ".markdown": "md",
    ".htm": "html",
    ".ndjson": "jsonl",
    ".text": "txt",
}


@click.command("export")
@click.argument("refs", nargs=-1, metavar="[REF]...", shell_complete=complete_refs)
@click.option("--all", "every", is_flag=True, help="All sessions, or all that fit the options below.")
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), help="Default: by the name of PATH, else md."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="A file; for several, a folder."
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--missing", is_flag=True, help="Of several, write only those whose files are not there yet.")
@click.option(
    "--redact",
    is_flag=False,
    flag_value="secrets",
    metavar="[SECRET_CATEGORIES]",
    help="Replace keys, tokens and passwords by placeholders; --redact=emails,paths those as well.",
)
@click.option("--everything", is_flag=True, help="Abandoned branches and injected text as well.")
@session_filters
@click.option("--no-sync", is_flag=True, help="Export what the archive holds, unrefreshed.")
@click.pass_obj
def command(
    setup: Setup,
    /,
    refs: tuple[str, ...],
    every: bool,
    format_: Format | None,
    output: Path | None,
    force: bool,
    missing: bool,
    redact: str | None,
    everything: bool,
    no_sync: bool,
    **options: Any,
) -> None:
    """Write sessions as Markdown, HTML, JSON, JSON lines or text.

    One session without PATH goes to standard output. Several, or all, go into a folder, one file each; HTML
    gets an index page. With --missing an export that was interrupted goes on.

    Example:

        backscroll export --all --workspace tideline --format html -o tideline
    """
    refs, kinds = _kinds(refs, redact, every=every)
    if bool(refs) == every:
        raise click.UsageError("name the sessions to export, or give --all")
    if force and missing:
        raise click.UsageError("--force replaces files and --missing leaves them; give one of the two")
    is_single = len(refs) == 1 and not _is_folder(output)
    format_ = format_ or (_format_of(output) if is_single else "md")
    redactor = Redactor(kinds) if kinds else None
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        wanted = make_filter(options)
        if is_single:
            ref = history.find(refs[0], wanted).ref
            _one(history, ref, format_, output, redactor, everything=everything, force=force)
        else:
            summaries = history.every_session(wanted) if every else _found(history, refs, wanted)
            how = {"everything": everything, "force": force, "missing": missing}
            _many(history, summaries, format_, output, redactor, **how)
    if redactor is not None:
        _tell(redactor)


def _kinds(
    refs: tuple[str, ...], redact: str | None, *, every: bool
) -> tuple[tuple[str, ...], list[SecretCategory]]:
    """What is to be replaced. What follows a bare --redact is a ref, unless it names kinds."""
    if redact is None:
        return refs, []
    names = redact.split(",")
    if all(name in SECRET_CATEGORIES for name in names):
        return refs, ["secrets", *(kind for kind in SECRET_CATEGORIES if kind in names and kind != "secrets")]
    if every or not redact or any(name in SECRET_CATEGORIES for name in names):
        wrong = next(name for name in names if name not in SECRET_CATEGORIES)
        raise click.UsageError(f"{wrong!r} cannot be redacted; what can is {', '.join(SECRET_CATEGORIES)}")
    return (redact, *refs), ["secrets"]


def _is_folder(output: Path | None) -> bool:
    return output is not None and (output.is_dir() or str(output).endswith(("/", "\\")))


def _found(history: History, refs: Iterable[str], wanted: Filter) -> list[SessionSummary]:
    """The sessions that are named, each once; an index counts within what the options leave."""
    found = (history.find(ref, wanted) for ref in refs)
    return list({summary.ref: summary for summary in found}.values())


def _one(
    history: History,
    ref: str,
    format_: Format,
    output: Path | None,
    redactor: Redactor | None,
    *,
    everything: bool,
    force: bool,
) -> None:
    pieces = history.export_session(ref, format_, redactor=redactor, everything=everything)
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece.encode("utf-8", "replace"))
        sys.stdout.flush()
        return
    click.echo(f"Wrote {write_one(pieces, output, force=force)}", err=True)


def _format_of(output: Path | None) -> Format:
    """The format that the name of a file asks for; Markdown where there is none, or no ending."""
    if output is None or not output.suffix:
        return "md"
    named = _ENDINGS.get(output.suffix.lower())
    if named is None:
        known = ", ".join(f".{one}" for one in FORMATS)
        raise click.UsageError(f"{output} has an ending that names no format ({known}); say it with --format")
    return named


def _many(
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
        raise click.UsageError("several sessions need a folder to go to: -o PATH")
    if output.is_file():
        raise click.UsageError(f"{output} is a file; several sessions need a folder to go to")
    if output.suffix.lower() in _ENDINGS and not _is_folder(output):
        raise click.UsageError(f"{output} is a name for a file; several sessions need a folder to go to")
    if not summaries:
        click.echo("No session fits; nothing was written.", err=True)
        return
    with ProgressBar("Exporting") as bar:
        done = history.export_sessions(
            summaries,
            output,
            format_,
            redactor=redactor,
            everything=everything,
            force=force,
            missing=missing,
            progress=bar.step,
        )
    number = len(done.files) - done.kept
    stay = f"; {done.kept:,} {'was' if done.kept == 1 else 'were'} there already" if done.kept else ""
    click.echo(f"Wrote {number:,} {'session' if number == 1 else 'sessions'} to {output}{stay}", err=True)
    if done.index is not None:
        click.echo(f"  begin with {done.index}", err=True)


def _tell(redactor: Redactor) -> None:
    """What was replaced and where, on standard error; never the secret itself."""
    replaced = redactor.found_secrets()
    if not replaced:
        click.echo("Nothing to redact was found. Look through it before you share it.", err=True)
        return
    click.echo("Replaced, by session and position of the message:", err=True)
    for one in replaced:
        places: dict[str, list[str]] = {}
        for place in one.locations[:_PLACES]:
            where = "summary" if place.position is None else str(place.position)
            places.setdefault(_short(place.ref), []).append(where)
        named = ", ".join(f"{ref} ({', '.join(where)})" for ref, where in places.items())
        more = f" and {len(one.locations) - _PLACES:,} more" if len(one.locations) > _PLACES else ""
        times = f", {one.count:,} times" if one.count > 1 else ""
        click.echo(sanitize(f"  {one.kind} #{one.number}{times}: {named}{more}"), err=True)


def _short(ref: str) -> str:
    source, _, id_ = ref.partition(":")
    return f"{source}:{id_[:8]}"
