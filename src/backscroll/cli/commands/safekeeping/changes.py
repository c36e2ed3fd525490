"""``backscroll changes`` and ``backscroll undo``: list and revert changes of the tools' stores."""

import click

from backscroll.cli.commands.safekeeping.confirmation import confirm, report_recovery
from backscroll.cli.global_options import Setup
from backscroll.cli.output.change_plans import change_document, change_lines
from backscroll.cli.output.json_documents import write_json
from backscroll.model.text import pluralize

__all__ = ["changes", "undo"]


@click.command("changes")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def changes(setup: Setup, as_json: bool) -> None:
    """List all changes to the tools' files and databases, newest first.

    \b
    Example:
      backscroll changes
    """
    with setup.history() as history:
        found = history.list_changes()
    if as_json:
        write_json({"data": [change_document(change) for change in found]})
    elif found:
        click.echo("\n".join(change_lines(found)))
    else:
        click.echo("No tool's files have been changed.")


@click.command("undo")
@click.argument("change_id", metavar="[ID]", required=False)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def undo(setup: Setup, change_id: str | None, yes: bool, as_json: bool) -> None:
    """Undo a change to a tool's files and databases.

    Restores all changed files byte for byte, and all changed rows. ID is an id that 'backscroll changes'
    prints, or its start. Without ID, undoes everything that the last command changed, or rolls back a
    command that was interrupted. Refuses if a file or row has changed since, or if the tool is running.

    \b
    Examples:
      backscroll undo
      backscroll undo 20261117-0912
    """
    with setup.history() as history:
        rolled_back = report_recovery(history)
        if rolled_back and change_id is None:
            if as_json:
                write_json({"data": [], "rolled_back": rolled_back})
            return
        planned = history.transfers.to_undo(change_id)
        if not as_json:
            click.echo("\n".join(change_lines(planned)))
        confirm(f"Undo {pluralize(len(planned), 'change')}?", yes=yes, has_dry_run=False)
        undone = history.undo_change(change_id)
    if as_json:
        write_json({"data": [change_document(change) for change in undone], "rolled_back": rolled_back})
    else:
        click.echo(f"Undone: {pluralize(len(undone), 'change')}.")
