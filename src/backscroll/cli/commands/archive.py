"""``backscroll archive``: manage the archive, the local database that keeps all sessions."""

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from backscroll.cli.app import CommandGroup
from backscroll.cli.messages import command_hint
from backscroll.cli.options import complete_refs
from backscroll.cli.output import write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.errors import UsageError
from backscroll.model.copies import RemainingCopy
from backscroll.model.problem import Repaired
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.humanize import format_size
from backscroll.render.session_header import session_label
from backscroll.render.sync import events_document, events_line
from backscroll.render.transcript import TranscriptOptions, header_lines

_MAX_LEFT_LINES = 12  # of one group
_MAX_PATH_CHARS = 500
_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group("archive", cls=CommandGroup)
def command() -> None:
    """Manage the archive, the local database that keeps all sessions.

    \b
    Examples:
      backscroll archive status
      backscroll archive extract 1 -o restored
    """


@command.command("path")
@_json_option
@click.pass_obj
def path(setup: Setup, as_json: bool) -> None:
    """Print the path of the archive file."""
    archive_path = setup.history().archive_path
    if as_json:
        write_json({"path": str(archive_path)})
    else:
        click.echo(archive_path)


@command.command("status")
@_json_option
@click.pass_obj
def status(setup: Setup, as_json: bool) -> None:
    """Show the size and contents of the archive."""
    with setup.history() as history:
        found = history.archive_admin.status()
        events = history.events()
    if as_json:
        document = msgspec.structs.asdict(found) | {"ledger": events_document(events)}
        write_json(document)
        return
    click.echo(found.path)
    for noun, count, messages in (
        ("session", found.sessions, found.session_messages),
        ("subagent", found.subagents, found.subagent_messages),
    ):
        click.echo(f"  {pluralize(count, noun)}" + (f", {pluralize(messages, 'message')}" if count else ""))
    stored = pluralize(found.messages, "message")
    click.echo(f"  {stored} in total, with system messages, abandoned branches and copies")
    click.echo(f"  {pluralize(found.units, 'unit')} read, {found.gone:,} since deleted by the tools")
    if line := events_line(events, datetime.now(UTC)):
        click.echo(f"  {line}")
    click.echo(f"  {format_size(found.size)} in total")
    click.echo(f"  original files: {format_size(found.kept_bytes)}, stored in {format_size(found.kept_size)}")
    click.echo(
        f"  original database rows: {found.rows:,}, {format_size(found.rows_bytes)},"
        f" stored in {format_size(found.rows_size)}"
    )
    problems = pluralize(found.problems, "problem")
    details = f". Run '{command_hint('doctor')}' for details." if found.problems else ""
    click.echo(f"  {problems} while reading{details}")


@command.command("verify")
@_json_option
@click.pass_obj
def verify(setup: Setup, as_json: bool) -> None:
    """Check the archive for damage.

    Recomputes all hashes and counts, derives all sessions again, and compares them with what is stored.
    Exit code 3: they differ. 'backscroll archive repair' repairs the archive.
    """
    with setup.history() as history:
        problems = history.archive_admin.verify()
    if as_json:
        write_json({"is_whole": not problems, "problems": problems})
    else:
        click.echo("\n".join(problems) if problems else "The archive is intact.")
    sys.exit(3 if problems else 0)


@command.command("extract")
@click.argument("ref", shell_complete=complete_refs)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Destination folder. Default: the current folder.",
)
@_json_option
@click.pass_obj
def extract(setup: Setup, ref: str, output: Path, as_json: bool) -> None:
    """Write a session's original files to a folder.

    Works even if the tool has deleted them. Files are restored byte for byte. A session from a database is
    written as a new database that contains its rows; use the folder with --root to read it. Existing files
    are never overwritten. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll archive extract 1 -o restored
    """
    with setup.history() as history:
        extracted = history.archive_admin.extract(ref, output)
    if as_json:
        files = [str(file) for file in extracted.files]
        document = {"files": files, "rows": extracted.rows, "blanked": extracted.blanked}
        write_json(document)
    else:
        for file in extracted.files:
            click.echo(file)
    if extracted.blanked:
        click.echo(
            f"These fields are empty because keys are never archived: {', '.join(extracted.blanked)}",
            err=True,
        )


@command.command("forget")
@click.argument("ref", shell_complete=complete_refs)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@_json_option
@click.pass_obj
def forget(setup: Setup, ref: str, yes: bool, as_json: bool) -> None:
    """Permanently erase a session from the archive.

    Erases its messages, subagents, original files and search index entries. Later syncs do not read it again.
    The tool's own files, journals and backups are not changed; those that contain the session are listed,
    with the next step. Shows title and workspace and asks for confirmation. --yes requires an id: an index
    can mean another session after a sync. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll archive forget 1
      backscroll archive forget 0f3c9a12 --yes
    """
    with setup.history() as history:
        summary = history.find_to_change(ref)
        if yes and ref.strip() == str(summary.index):
            raise UsageError(
                f"--yes requires an id, because an index can mean another session after a sync. Index"
                f" {summary.index} is now {summary.ref} ({session_label(summary)})."
            )
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError("Not a terminal: pass an id and --yes to confirm.")
            click.echo("\n".join(header_lines(summary, TranscriptOptions())), err=True)
            if not click.confirm("Permanently erase this session from the archive?", err=True):
                click.echo("Nothing was changed.", err=True)
                sys.exit(1)
        left = history.remaining_copies(summary.ref)
        forgotten = history.archive_admin.forget(summary.ref)
    if as_json:
        document = msgspec.structs.asdict(forgotten) | {"ref": summary.ref}
        copies = [msgspec.structs.asdict(copy) | {"next": _next_step(copy)} for copy in left]
        write_json(document | {"left": copies})
    else:
        click.echo(
            f"Erased {summary.ref} ({session_label(summary)}): {pluralize(forgotten.messages, 'message')},"
            f" {pluralize(forgotten.subagents, 'subagent')},"
            f" {format_size(forgotten.originals)} of original files."
        )
        for shared in forgotten.shared:
            click.echo(
                f"  {sanitize(shared)} also contains other sessions. Its original is no longer stored."
            )
        click.echo("\n".join(_left_lines(left)))
    if not forgotten.is_erased:
        click.echo(
            "Some of its data may remain in unused parts of the archive file: another process is using the"
            " file, or the disk is full. The next sync erases it.",
            err=True,
        )


def _left_lines(left: Iterable[RemainingCopy]) -> Iterator[str]:
    """Yield what contains the session still, each group below the next step."""
    groups: dict[str, list[RemainingCopy]] = {}
    for copy in left:
        groups.setdefault(_next_step(copy), []).append(copy)
    if not groups:
        yield "No file of a tool, journal or known backup contains the session."
        return
    yield "Not changed, and still with the session or a part of it:"
    for step, copies in groups.items():
        yield f"  {step}"
        for copy in copies[:_MAX_LEFT_LINES]:
            yield f"    {one_line(copy.path, _MAX_PATH_CHARS)}"
        if len(copies) > _MAX_LEFT_LINES:
            yield f"    … and {len(copies) - _MAX_LEFT_LINES:,} more; --json lists all"


def _next_step(copy: RemainingCopy) -> str:
    """Return how a remaining copy is erased, as a sentence."""
    match copy.kind:
        case "tool" if copy.is_shared:
            shared = f"Files of {copy.source} with other sessions too."
            return f"{shared} Delete the session in the tool, or its lines:"
        case "tool":
            return f"Files of {copy.source}. Delete them:"
        case "journal":
            return "Journal files that name or quote the session. Delete the entries:"
        case "backup" if copy.is_certain:
            create = command_hint("backup create")
            return f"Backups with the session. Delete them after '{create}':"
        case "backup":
            return "Backups that cannot be read. They may contain the session:"
    return "Damaged archives that a repair kept. They may contain the session; delete them:"


@command.command("rebuild")
@_json_option
@click.pass_obj
def rebuild(setup: Setup, as_json: bool) -> None:
    """Rebuild sessions and search index from the stored originals.

    Originals are the files and database rows that the tools wrote. Can be interrupted and run again at any
    time.
    """
    with setup.history() as history, ProgressBar("Rebuilding") as bar:
        try:
            done = history.archive_admin.rebuild(bar.step)
        except KeyboardInterrupt:
            click.echo("Interrupted. Progress is saved. Run the command again to finish.", err=True)
            sys.exit(130)
    if as_json:
        write_json(msgspec.structs.asdict(done))
        return
    originals = pluralize(done.units, "original")
    click.echo(f"Parsed {originals} again and rebuilt {pluralize(done.sessions, 'session')}.")
    if done.kept:
        click.echo(f"  {pluralize(done.kept, 'original')} skipped: files they depend on no longer exist")


@command.command("repair")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@_json_option
@click.pass_obj
def repair(setup: Setup, yes: bool, as_json: bool) -> None:
    """Replace a damaged archive by what can be read of it.

    Copies every readable row into a new archive, reads damaged sessions again from the tools or from their
    archived originals, rebuilds the search index and lists what is lost. The damaged file is kept.
    """
    history = setup.history()
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("Not a terminal: pass --yes to confirm.")
        if not click.confirm(f"Repair {history.archive_path}?", err=True):
            click.echo("Nothing was changed.", err=True)
            sys.exit(1)
    with history, ProgressBar("Reading again") as bar:
        done = history.archive_admin.repair(bar.step)
    if as_json:
        write_json(msgspec.to_builtins(done))
    else:
        click.echo("\n".join(_repair_lines(done)))
    sys.exit(3 if done.lost or done.lost_originals else 0)


def _repair_lines(done: Repaired) -> Iterator[str]:
    """Return the result of a repair in words."""
    yield f"Copied {pluralize(done.rows, 'row')} into a new archive."
    if done.damaged_tables:
        yield f"  rows that could not be read: in {', '.join(done.damaged_tables)}"
    if done.read_again:
        yield f"  {pluralize(done.read_again, 'unit')} read again from the tools"
    if done.parsed_again:
        yield f"  {pluralize(done.parsed_again, 'unit')} read again from archived originals"
    if done.lost_originals:
        yield f"  {pluralize(done.lost_originals, 'original file or row set')} lost"
    for session in done.lost:
        lost = "lost" if session.is_lost else f"{pluralize(session.lost_messages, 'message')} lost"
        yield f"  {session.ref} ({sanitize(session.title or 'untitled')}): {lost}"
    if not done.lost and not done.lost_originals:
        yield "Nothing was lost."
    yield f"The damaged file is kept: {done.damaged_file}"


@command.command("compact")
@_json_option
@click.pass_obj
def compact(setup: Setup, as_json: bool) -> None:
    """Reduce the size of the archive file."""
    with setup.history() as history:
        done = history.archive_admin.compact()
    if as_json:
        write_json(msgspec.structs.asdict(done) | {"saved": done.saved})
        return
    click.echo(
        f"{format_size(done.before)} → {format_size(done.after)}: {pluralize(done.saved, 'byte')} saved."
    )


@command.command("upgrade")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--merge", is_flag=True, help="Also import its conversations into the archive.")
@_json_option
@click.pass_obj
def upgrade(setup: Setup, path: Path, merge: bool, as_json: bool) -> None:
    """Upgrade a database that another program wrote.

    The database has an older version of the tables of this archive; they are changed to the current version.
    First writes a verified backup next to the database. If the upgrade fails, the database is not changed.

    \b
    Examples:
      backscroll archive upgrade telemetry.db --merge
    """
    with setup.history() as history:
        upgraded = history.archive_admin.upgrade_database(path)
        if not upgraded.is_changed and not as_json:
            click.echo(f"{upgraded.path} is already upgraded.")
        elif not as_json:
            click.echo(f"Upgraded {upgraded.path}")
            for platform, count in upgraded.rows.items():
                click.echo(f"  {pluralize(count, 'conversation')} from {platform}")
            click.echo(f"  {pluralize(upgraded.windows, 'window')} created")
            click.echo(f"  backup: {upgraded.backup}")
            for problem in upgraded.problems:
                click.echo(sanitize(f"  {problem.kind}: {problem.text}"), err=True)
        merged = history.archive_admin.import_database(path) if merge else None
    if as_json:
        write_json(msgspec.structs.asdict(upgraded) | {"merged": merged})
    elif merged is not None:
        imported = f"{pluralize(merged.sessions, 'conversation')} and {pluralize(merged.windows, 'window')}"
        click.echo(f"Imported {imported}.")
        if merged.known:
            click.echo(f"  {pluralize(merged.known, 'conversation')} already in the archive")
        if merged.kept_out:
            click.echo(f"  {merged.kept_out:,} skipped: forgotten earlier, or in an excluded workspace")
