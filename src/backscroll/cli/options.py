"""Options that several commands share."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from backscroll.cli.completion_values import complete_names, complete_tags
from backscroll.cli.progress import Bar
from backscroll.errors import ArchiveError
from backscroll.model.source_names import SOURCE_NAMES

if TYPE_CHECKING:
    from backscroll.history import History
    from backscroll.model import Filter

__all__ = ["Day", "as_conditions", "as_filter", "bring_up_to_date", "filters", "message_filters", "reading"]

F = TypeVar("F", bound=Callable[..., Any])


class Day(click.ParamType[datetime]):
    """A day, a month or a moment as the query syntax has it; its beginning, or the first moment after it."""

    name = "date"

    def __init__(self, *, is_end: bool = False) -> None:
        self._is_end = is_end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        from backscroll.model.dates import parse_date_range

        is_utc = ctx is not None and ctx.params.get("is_utc", False)
        span = parse_date_range(value, datetime.now(UTC), UTC if is_utc else None)
        if span is None:
            self.fail(f"{value!r} is no date; write it like 2026-10-03, 2026-10, yesterday or 7d", param, ctx)
        return span[1] if self._is_end else span[0]


def _narrowed(command: F, *, since: str, until: str, branch: str) -> F:
    for option in reversed(
        [
            click.option("--source", type=click.Choice(SOURCE_NAMES), help="Only sessions of this source."),
            click.option(
                "--workspace",
                shell_complete=complete_names("workspace"),
                help="Only of this workspace: its path, name, path's end or host.",
            ),
            click.option("--since", type=Day(), help=since),
            click.option("--until", type=Day(is_end=True), help=until),
            click.option("--branch", shell_complete=complete_names("branch"), help=branch),
            click.option(
                "--model",
                shell_complete=complete_names("model"),
                help="Only with a model whose name contains this.",
            ),
            click.option("--has-edits", is_flag=True, help="Only sessions that changed files."),
            click.option("--gone", is_flag=True, help="Only sessions no longer in the tool's own store."),
            click.option(
                "--tag",
                "tags",
                multiple=True,
                metavar="TAG",
                shell_complete=complete_tags,
                help="Only with this tag; repeatable.",
            ),
            click.option("--starred", is_flag=True, help="Only sessions with a star."),
        ]
    ):
        command = option(command)
    return command


def filters(command: F) -> F:
    """Which sessions are wanted."""
    return _narrowed(
        click.option("--subagents", is_flag=True, help="Subagents as well.")(command),
        since="Only with activity on or after this day.",
        until="Only begun on or before this day.",
        branch="Only begun on this git branch.",
    )


def message_filters(command: F) -> F:
    """Which messages are wanted, and of which sessions."""
    return _narrowed(
        command,
        since="Only said on or after this day.",
        until="Only said on or before this day.",
        branch="Only said on this git branch.",
    )


def as_conditions(options: dict[str, Any]) -> dict[str, str | tuple[str, ...]]:
    """The shared options as filters of the query syntax, by name; the times aside."""
    named = {name: options[name] for name in ("source", "workspace", "branch", "model")}
    facts = tuple(name for name in ("gone", "starred") if options[name])
    named |= {"has": "edits" if options["has_edits"] else None, "is": facts, "tag": options["tags"]}
    return {name: value for name, value in named.items() if value}


def as_filter(options: dict[str, Any]) -> "Filter":
    """The shared options as a filter."""
    from backscroll.model import Filter

    return Filter(
        source=options["source"],
        workspace=options["workspace"],
        since=options["since"],
        until=options["until"],
        branch=options["branch"],
        model=options["model"],
        has_edits=options["has_edits"],
        is_gone=True if options["gone"] else None,
        tags=tuple(tag.lstrip("#").lower() for tag in options["tags"]),
        is_starred=options["starred"],
        with_subagents=options["subagents"],
    )


def reading(command: F) -> F:
    """For commands that read: JSON on request, and no sync when that is not wanted."""
    command = click.option("--no-sync", is_flag=True, help="Show what the archive holds, unrefreshed.")(
        command
    )
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def bring_up_to_date(history: "History") -> None:
    """Sync before reading, as long as nobody else is at it and it can be done."""
    try:
        with Bar("Reading what changed") as bar:
            report = history.sync(bar.step, wait=False)
    except ArchiveError as error:
        if not error.is_readable:
            raise
        click.echo(f"{error}. This is what the archive holds so far.", err=True)
        return
    if report is None:
        click.echo("Another process is syncing; this is what the archive holds so far.", err=True)
