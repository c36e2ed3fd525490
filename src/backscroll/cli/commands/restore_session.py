"""``backscroll restore-session``: write a deleted session back to the tool's store."""

import click

from backscroll.cli.commands.changes import (
    change_document,
    plan_document,
    plan_lines,
    report_recovery,
)
from backscroll.cli.messages import command_hint
from backscroll.cli.options import complete_refs, no_sync_option, sync_before_reading
from backscroll.cli.output import confirm, write_json
from backscroll.cli.startup import Setup
from backscroll.model.text import sanitize


@click.command("restore-session")
@click.argument("ref", shell_complete=complete_refs)
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@no_sync_option
@click.pass_obj
def command(setup: Setup, ref: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Restore a session that its tool has deleted.

    Writes its files or rows from the archive back to their original paths and databases, so that the tool
    can list and resume it. Existing files are not replaced. Sessions keep their times; only the files of
    Claude Code get the current time, because it deletes files by their age. Prints the plan and asks for
    confirmation. 'backscroll undo' removes what was restored. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll restore-session 0f3c9a12
      backscroll restore-session 0f3c9a12 --dry-run
    """
    with setup.history() as history:
        report_recovery(history)
        sync_before_reading(history)
        planned = history.transfers.plan_restore(ref)
        changes = planned.plan.changes
        if dry_run and as_json:
            write_json({"ref": planned.session.ref, **plan_document(changes)})
            return
        if changes.is_empty and not as_json:
            ref = planned.session.ref
            click.echo(f"{ref} is restored already: nothing is missing in its tool's store.")
            return
        if not as_json:
            click.echo("\n".join(plan_lines(changes)))
        if dry_run:
            return
        confirm(f"Restore {planned.session.ref}?", yes=yes)
        result = history.transfers.restore(planned)
    if as_json:
        change = change_document(result.change) if result.change is not None else None
        write_json(
            {"ref": result.ref, "files": list(result.files), "rows": result.row_count, "change": change}
        )
    elif result.change is not None:
        click.echo(sanitize(f"Restored {result.ref} (change {result.change.id})."))
        click.echo(f"Run '{command_hint(f'resume {planned.session.id[:8]}')}' to continue it.")
