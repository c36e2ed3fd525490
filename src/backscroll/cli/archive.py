"""``backscroll archive``: the file that everything is kept in."""

import sys
from pathlib import Path

import click
import msgspec

from backscroll.cli.app import Setup
from backscroll.render.documents import encoded

__all__ = ["command"]


@click.group("archive")
def command() -> None:
    """Look after the file that everything is kept in."""


@command.command("path")
@click.pass_obj
def path(setup: Setup) -> None:
    """Print the archive file's path."""
    click.echo(setup.history().archive_path)


@command.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def status(setup: Setup, as_json: bool) -> None:
    """Say what the archive holds."""
    with setup.history() as history:
        found = history.archive_status()
    if as_json:
        sys.stdout.buffer.write(encoded(msgspec.structs.asdict(found)))
        return
    click.echo(found.path)
    click.echo(f"  {found.sessions:,} sessions, {found.subagents:,} subagents, {found.messages:,} messages")
    click.echo(f"  {found.units:,} units read, {found.gone:,} of them gone from the tools' own stores")
    click.echo(
        f"  {found.size / 1e6:,.1f} MB, of which {found.kept_size / 1e6:,.1f} MB hold"
        f" {found.kept_bytes / 1e6:,.1f} MB of original files"
    )
    click.echo(f"  {found.problems:,} problems met while reading; backscroll doctor names them")


@command.command("verify")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def verify(setup: Setup, as_json: bool) -> None:
    """Derive hashes and counts anew and compare. Exit code 3 means that something does not agree."""
    with setup.history() as history:
        found = history.verify_archive()
    if as_json:
        sys.stdout.buffer.write(encoded({"is_whole": not found, "problems": found}))
    else:
        click.echo("\n".join(found) if found else "The archive is whole.")
    sys.exit(3 if found else 0)


@command.command("extract")
@click.argument("ref")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder to write to; this one by default.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def extract(setup: Setup, ref: str, output: Path, as_json: bool) -> None:
    """Write a session's original files back, byte for byte, also when the tool has deleted them.

    Nothing is overwritten.
    """
    with setup.history() as history:
        written = history.extract(ref, output)
    if as_json:
        sys.stdout.buffer.write(encoded({"files": [str(file) for file in written]}))
        return
    for file in written:
        click.echo(file)
