"""``backscroll archive``: the file that everything is kept in."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from backscroll.cli.completion_values import complete_refs
from backscroll.cli.progress import ProgressBar
from backscroll.cli.setup import Setup
from backscroll.errors import UsageError
from backscroll.model.sanitize import sanitize
from backscroll.render.events import events_document, events_line
from backscroll.render.json import encode_json

if TYPE_CHECKING:
    from backscroll.archive.maintenance.legacy_upgrade import Upgraded

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
        ledger = history.ledger()
    if as_json:
        document = msgspec.structs.asdict(found) | {"ledger": events_document(ledger)}
        sys.stdout.buffer.write(encode_json(document))
        return
    click.echo(found.path)
    click.echo(f"  {found.sessions:,} sessions, {found.subagents:,} subagents, {found.messages:,} messages")
    click.echo(f"  {found.units:,} units read, {found.gone:,} of them gone from the tools' own stores")
    if told := events_line(ledger, datetime.now(UTC)):
        click.echo(f"  {told}")
    click.echo(
        f"  {found.size / 1e6:,.1f} MB, of which {found.kept_size / 1e6:,.1f} MB hold"
        f" {found.kept_bytes / 1e6:,.1f} MB of original files"
    )
    click.echo(
        f"  {found.rows:,} rows of databases: {found.rows_bytes / 1e6:,.1f} MB"
        f" in {found.rows_size / 1e6:,.1f} MB"
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
        sys.stdout.buffer.write(encode_json({"is_whole": not found, "problems": found}))
    else:
        click.echo("\n".join(found) if found else "The archive is whole.")
    sys.exit(3 if found else 0)


@command.command("extract")
@click.argument("ref", shell_complete=complete_refs)
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
    """Write a session's originals back, also when the tool has deleted them.

    Files come byte for byte. Of a database the session's rows come in a new one, laid out so that --root can
    read the folder. Nothing is overwritten.
    """
    with setup.history() as history:
        done = history.extract(ref, output)
    if as_json:
        told = {"files": [str(file) for file in done.files], "rows": done.rows, "blanked": done.blanked}
        sys.stdout.buffer.write(encode_json(told))
    else:
        for file in done.files:
            click.echo(file)
    if done.blanked:
        click.echo(
            f"Left empty in what was written, because keys are never kept: {', '.join(done.blanked)}",
            err=True,
        )


@command.command("forget")
@click.argument("ref", shell_complete=complete_refs)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def forget(setup: Setup, ref: str, yes: bool, as_json: bool) -> None:
    """Erase a session from the archive and the search index for good, and keep it from coming back.

    Its subagents and original files go with it. The tool's own files are not touched.
    """
    with setup.history() as history:
        summary = history.find(ref)
        name = f"{summary.ref} ({summary.title})" if summary.title else summary.ref
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError("nobody is there to be asked; say --yes to forget without a question")
            click.echo(f"{sanitize(name)}\n  {summary.message_count:,} messages", err=True)
            if not click.confirm("Forget this session for good?", err=True):
                click.echo("Nothing was changed.", err=True)
                sys.exit(1)
        forgotten = history.forget_session(summary.ref)
    if as_json:
        sys.stdout.buffer.write(encode_json(msgspec.structs.asdict(forgotten) | {"ref": summary.ref}))
    else:
        click.echo(
            f"Forgotten: {summary.ref}, {forgotten.messages:,} messages, {forgotten.subagents:,} subagents,"
            f" {forgotten.originals / 1e6:,.1f} MB of original files."
        )
        for path in forgotten.shared:
            click.echo(f"  {sanitize(path)} tells of other sessions too; its original is no longer kept")
        click.echo("The tool's own files were not touched; delete the session there as well if it should go.")
    if not forgotten.is_erased:
        click.echo(
            "Its bytes may still lie in free space of the archive's file, which others are using or which has"
            " no room to be written anew. The next backscroll sync erases them.",
            err=True,
        )


@command.command("rebuild")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def rebuild(setup: Setup, as_json: bool) -> None:
    """Make sessions and search index anew from the original files and rows that are kept.

    It can be stopped at any time.
    """
    with setup.history() as history, ProgressBar("Reading originals") as bar:
        try:
            done = history.rebuild_archive(bar.step)
        except KeyboardInterrupt:
            click.echo("Stopped. What was made anew so far stands; run it again for the rest.", err=True)
            sys.exit(130)
    if as_json:
        sys.stdout.buffer.write(encode_json(msgspec.structs.asdict(done)))
        return
    click.echo(f"{done.units:,} originals read again, {done.sessions:,} sessions made anew.")
    if done.kept:
        click.echo(f"  {done.kept:,} left as they were: what lay beside their files is no longer there")


@command.command("compact")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def compact(setup: Setup, as_json: bool) -> None:
    """Make the archive's file as small as it can be."""
    with setup.history() as history:
        done = history.compact_archive()
    if as_json:
        sys.stdout.buffer.write(encode_json(msgspec.structs.asdict(done) | {"saved": done.saved}))
        return
    click.echo(
        f"{done.before / 1e6:,.1f} MB before, {done.after / 1e6:,.1f} MB now: {done.saved:,} bytes saved."
    )


@command.command("upgrade")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--merge", is_flag=True, help="Also take its conversations into the archive.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def upgrade(setup: Setup, path: Path, merge: bool, as_json: bool) -> None:
    """Bring another program's database from the old schema of conversations to today's.

    A checked backup is written beside it first. When something is in the way, the database stays as it is.
    """
    with setup.history() as history:
        done = history.upgrade_database(path)
        if not as_json:
            _tell_upgrade(done)
        adopted = history.adopt_database(path) if merge else None
    if as_json:
        sys.stdout.buffer.write(encode_json(msgspec.structs.asdict(done) | {"merged": adopted}))
    elif adopted is not None:
        click.echo(
            f"Taken into the archive: {adopted.sessions:,} conversations, {adopted.windows:,} windows;"
            f" it had {adopted.known:,} of the conversations already."
        )
        if adopted.kept_out:
            click.echo(f"  {adopted.kept_out:,} kept out: forgotten before, or of an excluded workspace")


def _tell_upgrade(done: "Upgraded") -> None:
    if not done.is_changed:
        click.echo(f"{done.path} was upgraded before; nothing was changed in it.")
        return
    click.echo(f"Upgraded {done.path}")
    for platform, count in done.rows.items():
        click.echo(f"  {count:,} conversations of {platform}")
    click.echo(f"  {done.windows:,} windows made")
    click.echo(f"  the database as it was: {done.backup}")
    for problem in done.problems:
        click.echo(sanitize(f"  {problem.kind}: {problem.told}"), err=True)
