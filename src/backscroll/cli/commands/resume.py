"""``backscroll resume``: resume a session in the tool it came from."""

import sys
from typing import Any

import click
import msgspec

from backscroll.cli.commands.open import command_document, launch
from backscroll.cli.messages import as_sentence, command_hint, printable_message, welcome_lines
from backscroll.cli.options import complete_refs, launch_options, sync_before_reading
from backscroll.cli.output import write_json
from backscroll.cli.session_picker import is_interactive, pick_session
from backscroll.cli.startup import Setup
from backscroll.history.history import History
from backscroll.model.resume import Resumption
from backscroll.model.text import sanitize


@click.command("resume")
@click.argument("ref", required=False, shell_complete=complete_refs)
@click.option("--restore", is_flag=True, help="First restore the session if the tool has deleted it.")
@launch_options
@click.pass_obj
def command(
    setup: Setup, ref: str | None, only_print: bool, restore: bool, as_json: bool, no_sync: bool
) -> None:
    """Resume a session in the tool it came from.

    Without REF, shows a list to choose from, newest first; type to filter it.
    REF: see 'backscroll show --help'.
    Starts the tool in the folder of the session. If the tool has deleted the session, --restore writes its
    files back first. Existing files are never overwritten. 'backscroll undo' removes the restored files.
    If the session was deleted and --restore is not given, prints its files and the command, and exits with
    code 1 (with --print: 0).

    \b
    Examples:
      backscroll resume
      backscroll resume 1
      backscroll resume 1 --print
    """
    if ref is None:
        _check_interactive()
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        found = history.resume.plan(ref or _pick(history))
        if restore and not only_print and not as_json and found.session.is_gone:
            found = _restore(history, found)
    if as_json:
        write_json(_document(found))
        return
    _print_messages(found, with_files=found.returning is not None)
    if found.command is None:
        sys.exit(1)
    if only_print:
        click.echo(sanitize(found.command.shell_line))
        return
    if found.obstacle is not None or not found.is_installed:
        if not found.is_installed:
            click.echo(found.command.missing_program, err=True)
        click.echo("The command would be:", err=True)
        click.echo(sanitize(found.command.shell_line))
        sys.exit(1)
    launch(found.command)


def _check_interactive() -> None:
    if not is_interactive():
        raise click.UsageError(
            f"Not a terminal: pass the REF of a session. Run '{command_hint('list')}' to see all sessions."
        )


def _pick(history: History) -> str:
    """Ask the user for a session and return its ref."""
    sessions = history.all_sessions()
    if not sessions:
        for line in welcome_lines(history):
            click.echo(line, err=True)
        sys.exit(1)
    session = pick_session(sessions, "Resume which session?")
    if session is None:
        click.echo("Nothing was resumed.", err=True)
        sys.exit(1)
    return session.ref


def _restore(history: History, found: Resumption) -> Resumption:
    """Restore the session's files and return how to resume it now."""
    if found.returning is None or found.returning.obstacle is not None:
        return found
    for path in history.resume.restore_files(found.session.ref):
        click.echo(sanitize(f"Restored {path}"), err=True)
    history.sync()
    return history.resume.plan(found.session.ref)


def _print_messages(found: Resumption, *, with_files: bool) -> None:
    if found.obstacle is not None:
        click.echo(printable_message(as_sentence(found.obstacle)), err=True)
    if with_files and found.returning is not None:
        for path in found.returning.files:
            click.echo(sanitize(f"  {path}"), err=True)
    if found.command is not None and found.command.note is not None:
        click.echo(sanitize(as_sentence(found.command.note)), err=True)


def _document(found: Resumption) -> dict[str, Any]:
    return {
        "ref": found.session.ref,
        "is_gone": found.session.is_gone,
        "command": command_document(found.command) if found.command is not None else None,
        "obstacle": found.obstacle,
        "is_installed": found.is_installed,
        "restorable": msgspec.structs.asdict(found.returning) if found.returning is not None else None,
    }
