"""``backscroll migrate`` and ``migrate-workspace``: move or copy sessions to another folder."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from backscroll.cli.commands.changes import (
    change_document,
    error_document,
    plan_document,
    plan_lines,
    report_recovery,
)
from backscroll.cli.messages import command_hint, printable_message
from backscroll.cli.options import complete_refs, no_sync_option, sync_before_reading
from backscroll.cli.output import confirm, write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.history.history import History
from backscroll.model.text import pluralize, sanitize
from backscroll.model.transfer import MigrateResult, MigrationPlan, Mode, UnchangedSession

F = TypeVar("F", bound=Callable[..., Any])


def _migrate_options(function: F) -> F:
    options = (
        click.option(
            "--mode",
            type=click.Choice(["copy", "move"]),
            default="copy",
            show_default=True,
            help="Copy with new ids, or move.",
        ),
        click.option("--keep-cwd", is_flag=True, help="Keep the folder that is recorded with each message."),
        click.option("--dry-run", is_flag=True, help="Print the plan and change nothing."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
        no_sync_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command("migrate")
@click.argument("refs", metavar="REF...", nargs=-1, required=True, shell_complete=complete_refs)
@click.option(
    "--to",
    "target",
    type=click.Path(),
    required=True,
    metavar="PATH",
    help="Folder to copy or move to. It must exist.",
)
@_migrate_options
@click.pass_obj
def migrate(
    setup: Setup,
    refs: tuple[str, ...],
    target: str,
    mode: Mode,
    keep_cwd: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Copy or move sessions to another folder.

    The tool then lists and resumes them there. Message text, tool inputs and tool results never change.
    Prints the plan and asks for confirmation. 'backscroll undo' reverts the migration. REF: see 'backscroll
    show --help'. Exit code 3: some sessions were not copied or moved.

    \b
    Examples:
      backscroll migrate 0f3c9a12 --to ~/projects/boat
      backscroll migrate 1 2 --to ~/projects/boat --mode move --dry-run
    """
    with setup.history() as history:
        report_recovery(history)
        sync_before_reading(history)
        plan = history.transfers.plan_sessions(refs, target, mode=mode, keep_cwd=keep_cwd)
        _run(history, plan, dry_run=dry_run, yes=yes, as_json=as_json)


@click.command("migrate-workspace")
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@_migrate_options
@click.pass_obj
def migrate_workspace(
    setup: Setup,
    old: str,
    new: str,
    mode: Mode,
    keep_cwd: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Copy or move all sessions of a folder to another one.

    OLD need not exist: run this after you have moved a project. See 'backscroll migrate --help'.

    \b
    Examples:
      backscroll migrate-workspace ~/ferry ~/projects/ferry --mode move
      backscroll migrate-workspace ~/ferry ~/projects/ferry --dry-run
    """
    with setup.history() as history:
        report_recovery(history)
        sync_before_reading(history)
        plan = history.transfers.plan_workspace(old, new, mode=mode, keep_cwd=keep_cwd)
        _run(history, plan, dry_run=dry_run, yes=yes, as_json=as_json)


def _run(history: History, plan: MigrationPlan, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    if dry_run or not as_json:
        _print_plan(plan, as_json=as_json)
    if dry_run:
        sys.exit(_exit_code(len(plan.sessions) + len(plan.unchanged), len(plan.errors)))
    if not plan.sessions:
        result = history.transfers.migrate(plan)  # ends a command that was interrupted after its last change
        if as_json:
            write_json(_result_document(result))
        sys.exit(_exit_code(len(plan.unchanged), result.failed_count))
    verb = "Move" if plan.mode == "move" else "Copy"
    confirm(f"{verb} {pluralize(len(plan.sessions), 'session')} to {plan.target}?", yes=yes)
    try:
        with ProgressBar("Moving" if plan.mode == "move" else "Copying") as bar:
            result = history.transfers.migrate(plan, bar.step)
    except KeyboardInterrupt:
        past = "moved" if plan.mode == "move" else "copied"
        hint = f"'{command_hint('changes')}' lists what was {past}, '{command_hint('undo')}' reverts it."
        left = "The session in work was left as it was. Run the command again to continue it."
        click.echo(f"\n{left} {hint}", err=True)
        raise
    if as_json:
        write_json(_result_document(result))
    else:
        _print_result(plan, result)
    sys.exit(_exit_code(result.success_count + len(plan.unchanged), result.failed_count))


def _exit_code(success_count: int, failed_count: int) -> int:
    if not failed_count:
        return 0
    return 3 if success_count else 1


def _print_plan(plan: MigrationPlan, *, as_json: bool) -> None:
    if as_json:
        write_json(
            {
                "data": [
                    {"ref": one.session.ref, "new_ref": one.new_ref, **plan_document(one.plan.changes)}
                    for one in plan.sessions
                ],
                "unchanged": [_unchanged_document(one) for one in plan.unchanged],
                "errors": [error_document(error) for error in plan.errors],
            }
        )
        return
    for done in plan.unchanged:
        what = (
            f"is copied already: {done.new_ref}"
            if done.new_ref != done.ref
            else f"is in {plan.target} already"
        )
        click.echo(sanitize(f"{done.ref} {what}."))
    for one in plan.sessions:
        click.echo("\n".join(plan_lines(one.plan.changes)))
    for error in plan.errors:
        click.echo(printable_message(error.message), err=True)


def _print_result(plan: MigrationPlan, result: MigrateResult) -> None:
    verb = "Moved" if plan.mode == "move" else "Copied"
    for one in result.sessions:
        name = f" as {one.new_ref}" if one.new_ref != one.ref else ""
        click.echo(sanitize(f"{verb} {one.ref}{name} (change {one.change.id})."))
    for error in result.errors[len(plan.errors) :]:
        click.echo(printable_message(error.message), err=True)
    if result.sessions:
        click.echo(f"Run '{command_hint('undo')}' to revert this.")


def _result_document(result: MigrateResult) -> dict[str, Any]:
    return {
        "success_count": result.success_count,
        "failed_count": result.failed_count,
        "errors": [error_document(error) for error in result.errors],
        "data": [
            {"ref": one.ref, "new_ref": one.new_ref, "change": change_document(one.change)}
            for one in result.sessions
        ],
        "unchanged": [_unchanged_document(one) for one in result.unchanged],
    }


def _unchanged_document(one: UnchangedSession) -> dict[str, str]:
    """Return a session that needs no change as JSON."""
    return {"ref": one.ref, "new_ref": one.new_ref}
