"""``backscroll resume``, ``open`` and ``handoff``: continue a session in its tool, an editor or elsewhere."""

import os
import shutil
import subprocess
import sys
from typing import Any, NoReturn

import click
import msgspec

import backscroll.history  # loads the redactor on first use
from backscroll.cli.commands.changes import plan_lines, report_recovery
from backscroll.cli.messages import as_sentence, command_hint, printable_message, welcome_lines
from backscroll.cli.options import (
    complete_refs,
    keep_secrets_option,
    launch_options,
    read_options,
    sync_before_reading,
)
from backscroll.cli.output import confirm, write_json
from backscroll.cli.session_picker import is_interactive, pick_session
from backscroll.cli.startup import Setup
from backscroll.history.history import History
from backscroll.model.resume import Command, Resumption
from backscroll.model.text import pluralize, sanitize
from backscroll.render.handoff import handoff_document, handoff_lines


@click.command("resume")
@click.argument("ref", required=False, shell_complete=complete_refs)
@click.option("--restore", is_flag=True, help="First restore the session if the tool has deleted it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation before a restore.")
@launch_options
@click.pass_obj
def resume(setup: Setup, ref: str | None, only_print: bool, restore: bool, yes: bool, as_json: bool) -> None:
    """Resume a session in the tool it came from.

    Without REF, shows a list to choose from, newest first; type to filter it.
    REF: see 'backscroll show --help'.
    Starts the tool in the folder of the session. If the tool has deleted the session, --restore writes its
    files back first: it prints the plan and asks for confirmation. Existing files are never overwritten.
    'backscroll undo' removes the restored files.
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
        sync_before_reading(history)
        found = history.resume.plan(ref or _pick(history))
        if restore and not only_print and not as_json and found.session.is_gone:
            found = _restore(history, found, yes=yes)
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


def _restore(history: History, found: Resumption, *, yes: bool) -> Resumption:
    """Restore the session's files after confirmation, and return how to resume it now."""
    if found.returning is None or found.returning.obstacle is not None:
        return found
    report_recovery(history)
    planned = history.transfers.plan_restore(found.session.ref)
    if not planned.plan.changes.is_empty:
        click.echo("\n".join(plan_lines(planned.plan.changes)), err=True)
        confirm(f"Restore {planned.session.ref}?", yes=yes, has_dry_run=False)
        result = history.transfers.restore(planned)
        if result.change is not None:
            click.echo(sanitize(f"Restored {result.ref} (change {result.change.id})."), err=True)
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


@click.command("open")
@click.argument("ref", shell_complete=complete_refs)
@click.argument("message", required=False)
@launch_options
@click.pass_obj
def open_(setup: Setup, ref: str, message: str | None, only_print: bool, as_json: bool) -> None:
    """Open a session's workspace, or a file that a message changed or read.

    MESSAGE is a number or id from 'show'. Uses the editor in VISUAL or EDITOR, else an installed one, else
    the system's default. A remote workspace opens on its host, in Cursor or an editor like it.
    REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll open 1
      backscroll open 1 4
    """
    with setup.history() as history:
        sync_before_reading(history)
        position = None if message is None else history.transcript.find_message(history.find(ref), message)
        editor_command = history.resume.open_command(ref, position)
    if as_json:
        write_json(command_document(editor_command))
        return
    if only_print:
        click.echo(sanitize(editor_command.shell_line))
        return
    launch(editor_command)


def launch(command: Command) -> NoReturn:
    """Replace this process with the program, in its folder. On Windows, run it and wait."""
    environ = {**os.environ, **command.environ}
    if command.folder is not None:
        os.chdir(command.folder)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        if os.name == "posix":
            os.execvpe(command.argv[0], command.argv, environ)
        program = shutil.which(command.argv[0]) or command.argv[0]  # may be a script with a suffix
        sys.exit(subprocess.run([program, *command.argv[1:]], env=environ, check=False).returncode)
    except FileNotFoundError:
        click.echo(f"{command.missing_program} To run it yourself:", err=True)
        click.echo(command.shell_line)
        sys.exit(1)


def command_document(command: Command) -> dict[str, Any]:
    """Return a command as a JSON object, with a line for the shell."""
    return {
        "argv": command.argv,
        "folder": command.folder,
        "environ": command.environ,
        "shell": command.shell_line,
        "note": command.note,
    }


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
def handoff(setup: Setup, ref: str, tokens: int, keep_secrets: bool, as_json: bool) -> None:
    """Print a summary of a session to paste into another assistant.

    Prints the goal, decisions, files, commands, open items and last state of the session. They are
    extracted by rules on this machine: no model is used and nothing is sent.
    REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll handoff 1 --tokens 800
    """
    redactor = None if keep_secrets else backscroll.history.Redactor()
    with setup.history() as history:
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
