"""Options that several commands share."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from backscroll.archive import Filter
from backscroll.cli.progress import Bar
from backscroll.history import History
from backscroll.sources import NAMES

__all__ = ["Day", "as_filter", "bring_up_to_date", "filters", "reading"]

F = TypeVar("F", bound=Callable[..., Any])


class Day(click.ParamType[datetime]):
    """A day or a moment, in UTC unless it says otherwise."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no date; write it like 2026-10-03 or 2026-10-03T14:30", param, ctx)
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def filters(command: F) -> F:
    """Which sessions are wanted."""
    for option in reversed(
        [
            click.option("--source", type=click.Choice(NAMES), help="Only sessions of this source."),
            click.option("--workspace", help="Only of this workspace: its path, name or path's end."),
            click.option("--since", type=Day(), help="Only with activity on or after this day."),
            click.option("--until", type=Day(), help="Only begun before this day."),
            click.option("--branch", help="Only begun on this git branch."),
            click.option("--model", help="Only with a model whose name contains this."),
            click.option("--has-edits", is_flag=True, help="Only those that changed files."),
            click.option("--gone", is_flag=True, help="Only those no longer in the tool's own store."),
            click.option("--subagents", is_flag=True, help="Subagents as well."),
        ]
    ):
        command = option(command)
    return command


def as_filter(options: dict[str, Any]) -> Filter:
    """The shared options as a filter."""
    return Filter(
        source=options["source"],
        workspace=options["workspace"],
        since=options["since"],
        until=options["until"],
        branch=options["branch"],
        model=options["model"],
        has_edits=options["has_edits"],
        is_gone=True if options["gone"] else None,
        with_subagents=options["subagents"],
    )


def reading(command: F) -> F:
    """For commands that read: JSON on request, and no sync when that is not wanted."""
    command = click.option("--no-sync", is_flag=True, help="Show what the archive holds, unrefreshed.")(
        command
    )
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def bring_up_to_date(history: History) -> None:
    """Sync before reading, as long as nobody else is at it."""
    with Bar("Reading what changed") as bar:
        report = history.sync(bar.step, wait=False)
    if report is None:
        click.echo("Another process is syncing; this is what the archive holds so far.", err=True)
