"""``backscroll changes`` and ``backscroll undo``; also how other commands show what they change."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from backscroll.cli.output import confirm, write_json
from backscroll.cli.startup import Setup
from backscroll.history.history import History
from backscroll.model.change import Change, ChangePlan, ChangeState
from backscroll.model.dates import iso
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.model.transfer import MigrateError

_MAX_KEY_CHARS = 120
_STATES: dict[ChangeState, str] = {
    "preparing": "interrupted before it began",
    "applying": "interrupted",
    "undoing": "undo interrupted",
    "undone": "undone",
}


@click.command("changes")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def changes(setup: Setup, as_json: bool) -> None:
    """List all changes to the tools' files and databases, newest first.

    A change that was interrupted is rolled back by the next command that changes something. If that is not
    possible, 'backscroll undo ID' ends it.

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
    prints, or its start. Without ID, undoes everything that the last command changed, also if it was
    interrupted. Refuses if a file or row has changed since, if a later change concerns the
    same session, or if the tool is running. An interrupted change is ended in any case; what could not be
    restored is listed (exit code 1).

    \b
    Examples:
      backscroll undo
      backscroll undo 20261117-0912
    """
    with setup.history() as history:
        planned = history.transfers.to_undo(change_id)
        rolled_back = report_recovery(history)
        left = {one.id for one in history.list_changes() if not one.is_undone}
        if left.isdisjoint(one.id for one in planned):
            if as_json:
                write_json({"data": [], "rolled_back": rolled_back})
            elif not rolled_back:
                already = " already" if planned[0].is_undone else ""
                click.echo(f"Change {planned[0].id} is undone{already}.")
            return
        planned = [one for one in planned if one.id in left]
        if not as_json:
            click.echo("\n".join(change_lines(planned)))
        confirm(f"Undo {pluralize(len(planned), 'change')}?", yes=yes, has_dry_run=False)
        undone = history.undo_change(change_id)
    problems = [problem for change in undone for problem in change.problems]
    if as_json:
        write_json({"data": [change_document(change) for change in undone], "rolled_back": rolled_back})
    else:
        click.echo(f"Undone: {pluralize(len(undone), 'change')}.")
        for problem in problems:
            click.echo(sanitize(f"Not restored: {problem}"), err=True)
    sys.exit(1 if problems else 0)


def report_recovery(history: History) -> list[str]:
    """Roll back changes that a crash interrupted, and say so. Return their descriptions."""
    rolled_back = history.transfers.recover()
    for what in rolled_back:
        click.echo(sanitize(f"Rolled back a change that was interrupted: {what}"), err=True)
    for _, error in history.transfers.unfinished():
        click.echo(sanitize(f"Warning: {error}"), err=True)
    return rolled_back


def plan_lines(plan: ChangePlan) -> Iterator[str]:
    """Yield what a plan changes, file by file and row by row. The rows of a database follow its path."""
    yield sanitize(plan.what)
    for file in plan.files:
        yield sanitize(f"  {file.action:7} {file.label:14} {file.path}")
    for line in plan.lines:
        action = "append" if line.before is None else "change"
        yield sanitize(f"  {action:7} {line.label:14} {line.path}")
    for table in plan.tables:
        yield sanitize(f"  create  {'table':14} {table.name} in {table.database}")
    for move in plan.moves:
        yield sanitize(f"  move    {'archive':14} {move.session}")
    database: Path | None = None
    for row in plan.rows:
        if row.database != database:
            database = row.database
            yield sanitize(f"  rows of {database}")
        key = one_line(" ".join(map(str, row.key.values())), _MAX_KEY_CHARS)
        yield sanitize(f"    {row.action:7} {row.label:14} {row.table} {key}")
    for warning in plan.warnings:
        yield sanitize(f"  Warning: {warning}")


def plan_document(plan: ChangePlan) -> dict[str, Any]:
    """Return a plan as JSON."""
    return {
        "what": plan.what,
        "files": [
            {"action": file.action, "label": file.label, "path": str(file.path), "size": file.size}
            for file in plan.files
        ],
        "lines": [{"label": line.label, "path": str(line.path)} for line in plan.lines],
        "rows": [
            {
                "action": row.action,
                "label": row.label,
                "table": row.table,
                "key": " ".join(map(str, row.key.values())),
                "database": str(row.database),
            }
            for row in plan.rows
        ],
        "tables": [{"table": table.name, "database": str(table.database)} for table in plan.tables],
        "moves": [
            {"session": move.session, "before": move.before, "after": move.after} for move in plan.moves
        ],
        "warnings": list(plan.warnings),
    }


def change_lines(changes: Iterable[Change]) -> Iterator[str]:
    """Yield one line per recorded change."""
    for change in changes:
        counts = [pluralize(change.file_count, "file"), pluralize(change.row_count, "row")]
        state = f"  {_STATES[change.state]}" if change.state in _STATES else ""
        at = f"{change.at.astimezone():%Y-%m-%d %H:%M}"
        size = f"  ({', '.join(counts)})" if change.file_count or change.row_count else ""
        yield sanitize(f"{change.id}  {at}  {change.what}{size}{state}")
        for problem in change.problems:
            yield sanitize(f"  Not restored: {problem}")


def change_document(change: Change) -> dict[str, Any]:
    """Return a recorded change as JSON."""
    return {
        "id": change.id,
        "at": iso(change.at),
        "what": change.what,
        "sessions": list(change.sessions),
        "files": change.file_count,
        "rows": change.row_count,
        "is_undone": change.is_undone,
        "is_interrupted": change.is_interrupted,
        "state": change.state,
        "problems": list(change.problems),
    }


def error_document(error: MigrateError) -> dict[str, str]:
    """Return the reason why a session was not changed as JSON."""
    return {"session_id": error.session_id, "code": error.code, "message": error.message}
