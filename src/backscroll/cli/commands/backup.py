"""``backscroll backup``: create, check, list and restore backups."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from backscroll.cli.app import CommandGroup
from backscroll.cli.options import (
    SOURCE_NAME,
    complete_refs,
    filter_options,
    has_filters,
    no_sync_option,
    sync_before_reading,
)
from backscroll.cli.output import write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.errors import BackscrollError, UsageError
from backscroll.filters import make_filter
from backscroll.model.backup import NIGHTLY_RULES, KeepRules
from backscroll.model.text import one_line, pluralize
from backscroll.render import backups as render

if TYPE_CHECKING:
    from backscroll.model.backup import Prefer, ProgressCallback


_EXIT_CODES = {"valid": 0, "warnings": 3, "invalid": 1}
_KEEP_LABELS = {
    "last": "the newest N backups",
    "daily": "the newest backup of each of the last N days",
    "weekly": "the newest backup of each of the last N weeks",
    "monthly": "the newest backup of each of the last N months",
}
_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_file_argument = click.argument("file", type=click.Path(path_type=Path))


@click.group("backup", cls=CommandGroup)
def command() -> None:
    """Create, check, list and restore backups.

    A backup is one file with the tools' histories and the archive.

    \b
    Examples:
      backscroll backup create
      backscroll backup verify backups/backscroll-20261117-090000.zip
    """


@command.command("create")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="File to write.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for a file with a generated name; not with --output. Default: the setting backup_dir, else"
    " 'backups' beside the archive.",
)
@click.option(
    "--base",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write only files that changed since this backup, or since the 'latest' one in the folder."
    " Restoring needs both files.",
)
@click.option(
    "--session",
    "sessions",
    multiple=True,
    metavar="REF",
    shell_complete=complete_refs,
    help="Only this session, with its subagents. Repeatable.",
)
@filter_options()
@click.option("--force", is_flag=True, help="Replace an existing backup that no other one needs.")
@click.option("--create", "create_folder", is_flag=True, help="Create the folder if it is missing.")
@click.option("--with-secrets", is_flag=True, help="Keep logins, tokens and encryption keys of the tools.")
@no_sync_option
@_json_option
@click.pass_obj
def create(
    setup: Setup,
    /,
    output: Path | None,
    folder: Path | None,
    base: Path | None,
    sessions: tuple[str, ...],
    force: bool,
    create_folder: bool,
    with_secrets: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Back up the tools' histories and the archive into one file.

    The file is a ZIP file with Zstandard-compressed entries. It contains transcripts, side folders, copies of
    databases, the archive, journals, prices, settings and the change log. The tools may be running. Logins,
    tokens and encryption keys are removed from the copies of databases. Files that cannot be read are listed
    (exit code 3).

    Options that select sessions make a filtered backup: it contains the files, rows and archive entries of
    these sessions and nothing else.

    \b
    Examples:
      backscroll backup create
      backscroll backup create -o /mnt/disk/history.zip
      backscroll backup create --base latest
      backscroll backup create --workspace ferry --since 2026-10 -o ferry.zip
    """
    if output is not None and folder is not None:
        raise click.UsageError("--output cannot be combined with --dir.")
    with setup.history() as history:
        if not setup.no_sync:
            setup.no_wait = False
            sync_before_reading(history)
        with _progress() as progress:
            result = history.backups.create(
                output,
                folder=folder,
                filter=make_filter(filters) if has_filters(filters) else None,
                sessions=sessions,
                base=base,
                force=force,
                create_folder=create_folder,
                with_secrets=with_secrets,
                progress=progress,
            )
    if as_json:
        for skipped in result.manifest.skipped:
            click.echo(f"Not in the backup: {one_line(skipped.path, 500)}: {skipped.reason}", err=True)
        manifest = render.manifest_document(result.manifest, with_files=False)
        write_json({"backup_path": result.backup_path, "manifest": manifest})
    else:
        click.echo("\n".join([result.backup_path, *render.manifest_lines(result.manifest)]))
    sys.exit(3 if result.manifest.skipped else 0)


@command.command("verify")
@_file_argument
@_json_option
@click.pass_obj
def verify(setup: Setup, file: Path, as_json: bool) -> None:
    """Check every file of a backup.

    Decompresses all files and compares their sizes and hashes with the manifest. 'latest' is the newest
    backup, and DIR/latest the newest one in a folder. Exit code 0: valid; 3: valid with warnings; 1: invalid.
    """
    with setup.history() as history, _progress() as progress:
        path = history.backups.find(file)
        validation = history.validate_backup(path, progress)
    if as_json:
        write_json(render.validation_document(validation))
    else:
        lines = render.validation_lines(validation)
        click.echo("\n".join([str(path), *lines] if path != file.absolute() else lines))
    sys.exit(_EXIT_CODES[validation.status])


@command.command("list")
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@_json_option
@click.pass_obj
def list_(setup: Setup, folder: Path | None, as_json: bool) -> None:
    """List the backups in a folder, newest first.

    Default folder: the setting backup_dir, else 'backups' beside the archive.
    """
    with setup.history() as history:
        folder = folder or history.backups.folder
        found = history.backups.list(folder)
    if as_json:
        write_json({"folder": str(folder), "data": [render.summary_document(backup) for backup in found]})
    elif found:
        click.echo("\n".join(render.list_lines(found)))
    else:
        click.echo(f"No backups in {folder}.", err=True)


def _keep_options(default: KeepRules) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of `KeepRules`."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for name, label in reversed(_KEEP_LABELS.items()):
            number = getattr(default, name)
            names = [f"--keep-{name}", *(["--keep"] if name == "last" else []), f"keep_{name}"]
            text = f"Keep {label}.{f' Default: {number}.' if number else ''}"
            option = click.option(*names, type=click.IntRange(min=0), default=number, metavar="N", help=text)
            function = option(function)
        return function

    return decorate


@command.command("prune")
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@_keep_options(KeepRules())
@click.option("--dry-run", is_flag=True, help="Print what would be kept and deleted; delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@_json_option
@click.pass_obj
def prune(
    setup: Setup,
    /,
    folder: Path | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **keep: int,
) -> None:
    """Delete old backups in a folder.

    Prints what is kept and why, and what is deleted, and asks for confirmation. Days, weeks and months
    without a backup do not count. A backup is kept if one of the options keeps it.

    Only complete and valid backups count. Damaged ones and those of selected sessions are kept, and so is the
    base of an incremental backup that is kept. Incomplete ones are deleted if there is a newer complete one.

    \b
    Examples:
      backscroll backup prune --keep-last 5 --dry-run
      backscroll backup prune /mnt/disk/backups --keep-daily 7 --keep-weekly 4 --keep-monthly 12
    """
    rules = _keep_rules(keep)
    with setup.history() as history:
        verdicts = history.backups.plan_prune(rules, folder)
        removed = [one.backup for one in verdicts if not one.is_kept]
        if not as_json and verdicts:
            click.echo("\n".join(render.verdict_lines(verdicts)))
        if removed and not dry_run:
            _confirm(f"Delete {pluralize(len(removed), 'backup')}?", yes=yes)
            for backup in removed:
                history.backups.delete(backup)
    if as_json:
        write_json(render.verdicts_document(verdicts, is_dry_run=dry_run))
    elif not removed:
        click.echo("Nothing to delete.")
    elif dry_run:
        click.echo("Nothing was deleted (dry run).")
    else:
        click.echo(f"Deleted {pluralize(len(removed), 'backup')}.")


def _keep_rules(values: dict[str, int]) -> KeepRules:
    return KeepRules(**{name.removeprefix("keep_"): value for name, value in values.items()})


@command.command("nightly")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of the backups. Default: the setting backup_dir, else 'backups' beside the archive.",
)
@_keep_options(NIGHTLY_RULES)
@click.option("--create", "create_folder", is_flag=True, help="Create the folder if it is missing.")
@no_sync_option
@_json_option
@click.pass_obj
def nightly(setup: Setup, /, folder: Path | None, create_folder: bool, as_json: bool, **keep: int) -> None:
    """Create a backup, verify it, and delete old ones, without a question.

    For cron, systemd and launchd. The backup is incremental to the latest in the folder; every 30 days, it is
    not. Prints one line, and appends it to nightly.log in the folder of the archive. Only backups of this
    machine and archive, named backscroll-DATE-TIME.zip, are counted and deleted, as by 'backscroll backup
    prune'.

    Exit code 0: created and valid; 3: something is not included; 1: it failed or is invalid, and nothing was
    deleted.

    \b
    Examples:
      backscroll backup nightly --dir /mnt/disk/backups
      backscroll backup nightly --dir /mnt/disk/backups --keep-daily 14
    """
    rules = _keep_rules(keep)
    with setup.history() as history:
        backups = history.backups
        try:
            if not setup.no_sync:
                setup.no_wait = False
                sync_before_reading(history)
            with _progress() as progress:
                result = backups.nightly(folder, rules, create_folder=create_folder, progress=progress)
        except BackscrollError as error:
            backups.log_nightly(render.failure_line(error))
            raise
        line = render.nightly_line(result)
        backups.log_nightly(line)
    if as_json:
        write_json(render.nightly_document(result))
    else:
        click.echo(line)
    sys.exit(_EXIT_CODES[result.validation.status])


@command.command("show")
@_file_argument
@click.option("--files", "with_files", is_flag=True, help="List all files.")
@_json_option
@click.pass_obj
def show(setup: Setup, file: Path, with_files: bool, as_json: bool) -> None:
    """Show the content of a backup.

    Prints the counts of the manifest, the settings and the change log. 'backscroll backup verify' checks the
    files.
    """
    with setup.history() as history:
        details = history.backups.details(file)
    if as_json:
        write_json(render.details_document(details))
        return
    click.echo(file)
    click.echo("\n".join([*render.manifest_lines(details.manifest), *render.details_lines(details)]))
    if with_files:
        click.echo("\n".join(render.file_lines(details.manifest)))


@command.command("restore")
@_file_argument
@click.option("--source", type=SOURCE_NAME, help="Only the files of this source.")
@click.option(
    "--session",
    "sessions",
    multiple=True,
    metavar="REF",
    help="Only this session of the backup, with its subagents. Repeatable.",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="OLD=NEW",
    help="Replace the folder OLD with NEW in file paths and in the workspaces of sessions. Repeatable.",
)
@click.option(
    "--prefer",
    type=click.Choice(["machine", "backup"]),
    help="Which files and sessions to keep if they differ. Default: those of this machine.",
)
@click.option("--force", is_flag=True, help="The same as --prefer backup. Replaces no database.")
@click.option("--config", "with_config", is_flag=True, help="Restore the settings in config.toml, too.")
@click.option("--dry-run", is_flag=True, help="Print what would be restored; change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@_json_option
@click.pass_obj
def restore(
    setup: Setup,
    file: Path,
    source: str | None,
    sessions: tuple[str, ...],
    maps: tuple[str, ...],
    prefer: "Prefer | None",
    force: bool,
    with_config: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Add what is missing from a backup: files, sessions, tags, notes and journals.

    Close the tools first. Checks the files, prints the plan and asks for confirmation. Damaged files are not
    restored (exit code 3). What exists stays. What differs is listed, and kept unless --prefer backup is
    given. Sessions are added to existing databases one by one, and to the archive; no database is replaced.
    'backscroll undo' reverts the changes of the tools' files.

    'backscroll --backup FILE list' shows the sessions in a backup, --session restores some of them.

    --map is for another machine or user: paths below OLD become paths below NEW, so that the tools find
    their sessions. Message text keeps the old paths.

    \b
    Examples:
      backscroll backup restore history.zip --dry-run
      backscroll backup restore history.zip --source claude-code
      backscroll backup restore history.zip --session 0f3c9a12
      backscroll backup restore history.zip --map /home/ada=/home/ada.lovelace
    """
    options: dict[str, Any] = {
        "source": source,
        "sessions": sessions,
        "path_map": dict(map(_parse_map, maps)),
        "force": force,
        "prefer": prefer,
        "with_config": with_config,
    }
    with setup.history() as history:
        with _progress() as progress:
            plan = history.restore_backup(file, **options, is_dry_run=True, progress=progress)
        result = plan
        if not as_json:
            click.echo("\n".join(render.restore_lines(plan)))
        if not plan.is_empty and not dry_run:
            count = pluralize(plan.sessions_restored, "session")
            _confirm(f"Restore {pluralize(plan.files_restored, 'file')} and {count}?", yes=yes)
            with _progress() as progress:
                result = history.restore_backup(file, **options, progress=progress)
    if as_json:
        write_json(msgspec.to_builtins(result))
    elif dry_run:
        click.echo("Nothing was changed (dry run).")
    else:
        click.echo(render.restore_summary(result))
    sys.exit(3 if any(one.action == "damaged" for one in result.files) else 0)


def _parse_map(item: str) -> tuple[str, str]:
    old, equals, new = item.partition("=")
    if not equals or not old or not new:
        raise click.UsageError(f"Invalid map {item!r}. Use OLD=NEW, such as /home/ada=/home/bea.")
    return old, new


def _confirm(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Not a terminal: pass --yes to confirm.")
    if not click.confirm(question, err=True):
        click.echo("Nothing was changed.", err=True)
        sys.exit(1)


@contextmanager
def _progress() -> "Iterator[ProgressCallback]":
    """Show the progress of a backup on a terminal."""
    with ProgressBar("Preparing") as bar:
        yield lambda step: bar.phase(step.phase, step.done, step.total)
