"""``backscroll restore-session``: write deleted sessions back to the tools' stores."""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from backscroll.cli.commands.changes import (
    change_document,
    error_document,
    plan_document,
    plan_lines,
    report_recovery,
)
from backscroll.cli.messages import command_hint, printable_message
from backscroll.cli.options import (
    complete_refs,
    filter_options,
    has_filters,
    no_sync_option,
    sync_before_reading,
)
from backscroll.cli.output import confirm, write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.filters import make_filter
from backscroll.history.history import History
from backscroll.model.change import ChangePlan
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.model.transfer import RestoreSessionsPlan, RestoreSessionsResult

_MAX_TITLE_CHARS = 60


@click.command("restore-session")
@click.argument("refs", metavar="[REF]...", nargs=-1, shell_complete=complete_refs)
@filter_options()
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@no_sync_option
@click.pass_obj
def command(
    setup: Setup, /, refs: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool, **filters: Any
) -> None:
    """Restore sessions that their tools have deleted.

    Writes their files or rows from the archive back to their original paths and databases, so that the tools
    can list and resume them. Existing files are not replaced. Sessions keep their times; only the files of
    Claude Code get the current time, because it deletes files by their age. Prints the plan and asks for
    confirmation. 'backscroll undo' removes what was restored.

    Restores the sessions of the refs, or all that match the options. The plan says for each tool how many
    sessions are added, kept because nothing is missing, and refused, with the reason. All are restored with
    one change. Exit code 3: some were refused. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll restore-session 0f3c9a12
      backscroll restore-session 0f3c9a12 --dry-run
      backscroll restore-session --gone --workspace ferry
    """
    if not refs and not has_filters(filters):
        raise click.UsageError("Pass the REF of a session, or options that select sessions, such as --gone.")
    with setup.history() as history:
        report_recovery(history)
        sync_before_reading(history)
        if len(refs) == 1 and not has_filters(filters):
            _restore_one(history, refs[0], dry_run=dry_run, yes=yes, as_json=as_json)
            return
        filter_ = make_filter(filters) if has_filters(filters) else None
        with ProgressBar("Planning") as bar:
            plan = history.transfers.plan_restores(refs, filter=filter_, progress=bar.step)
        _restore_all(history, plan, dry_run=dry_run, yes=yes, as_json=as_json)


def _restore_one(history: History, ref: str, *, dry_run: bool, yes: bool, as_json: bool) -> None:
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


def _restore_all(
    history: History, plan: RestoreSessionsPlan, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    if not as_json:
        click.echo("\n".join(_plan_lines(plan)))
    if dry_run or not plan.added:
        if as_json:
            write_json(_plan_document(plan))
        sys.exit(_exit_code(len(plan.added) + len(plan.kept), len(plan.refused)))
    confirm(f"Restore {pluralize(len(plan.added), 'session')}?", yes=yes)
    result = history.transfers.restore_all(plan)
    if as_json:
        write_json(_result_document(result))
    else:
        planned = {one.error for one in plan.refused}
        for error in (one for one in result.errors if one not in planned):
            click.echo(printable_message(error.message), err=True)
        if result.change is not None:
            count = pluralize(len(result.restored), "session")
            click.echo(f"Restored {count} (change {result.change.id}).")
            click.echo(f"Run '{command_hint('undo')}' to revert this.")
    sys.exit(_exit_code(len(result.restored) + len(result.kept), len(result.errors)))


def _exit_code(done: int, refused: int) -> int:
    if not refused:
        return 0
    return 3 if done else 1


def _plan_lines(plan: RestoreSessionsPlan) -> Iterator[str]:
    """Yield the sessions that are restored, those that are refused, and the counts of each source."""
    if plan.added:
        yield plan.changes.what
    for one in plan.added:
        title = one_line(one.session.title or "", _MAX_TITLE_CHARS)
        yield sanitize(f"  add     {one.session.ref}  {_counts(one.plan.changes)}  {title}".rstrip())
    for each in plan.refused:
        name = "" if each.session.id in each.error.message else f"{each.session.ref}: "
        yield printable_message(f"  refuse  {name}{each.error.message}")
    added = Counter(one.session.source for one in plan.added)
    kept = Counter(one.source for one in plan.kept)
    refused = Counter(one.session.source for one in plan.refused)
    for name in sorted({*added, *kept, *refused}):
        yield f"{name}: {added[name]:,} added, {kept[name]:,} kept, {refused[name]:,} refused"


def _counts(changes: ChangePlan) -> str:
    counted = ((changes.files, "file"), (changes.lines, "line"), (changes.rows, "row"))
    return ", ".join(pluralize(len(items), noun) for items, noun in counted if items)


def _plan_document(plan: RestoreSessionsPlan) -> dict[str, Any]:
    return {
        "sessions": [
            *({"ref": one.session.ref, "action": "add"} for one in plan.added),
            *({"ref": one.ref, "action": "keep"} for one in plan.kept),
            *(
                {"ref": one.session.ref, "action": "refuse", "code": one.error.code}
                | {"message": one.error.message}
                for one in plan.refused
            ),
        ],
        **plan_document(plan.changes),
    }


def _result_document(result: RestoreSessionsResult) -> dict[str, Any]:
    return {
        "restored": list(result.restored),
        "kept": list(result.kept),
        "errors": [error_document(error) for error in result.errors],
        "files": list(result.files),
        "rows": result.row_count,
        "change": change_document(result.change) if result.change is not None else None,
    }
