"""Options that several commands share."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from backscroll.cli.completion_values import complete_names, complete_tags
from backscroll.cli.output.errors import as_sentence
from backscroll.cli.output.hints import command_hint, permission_lines
from backscroll.cli.output.progress import ProgressBar
from backscroll.errors import ArchiveError
from backscroll.model.dates import parse_date_range
from backscroll.render.terminal.humanize import format_remaining

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from backscroll.history import History
    from backscroll.model import Filter
    from backscroll.model.sync import SyncStatus

__all__ = [
    "EVERYTHING_HELP",
    "PAGE_SIZE",
    "DateParam",
    "SourceParam",
    "has_filters",
    "incomplete_line",
    "keep_secrets_option",
    "launch_options",
    "make_filter",
    "make_query_filters",
    "message_filters",
    "no_sync_option",
    "page_options",
    "read_options",
    "session_filters",
    "stats_filters",
    "sync_before_reading",
    "sync_options",
    "top_session_filters",
    "workspace_option",
]

F = TypeVar("F", bound=Callable[..., Any])

EVERYTHING_HELP = "Include messages that were rewound or retried, and text that the tool added itself."
PAGE_SIZE = 20

_DATE_FORMATS = "Dates: 2026-10-03, 2026-10, yesterday or 7d."
_SESSION_BRANCH = "Only sessions started on this git branch."
_SESSION_MODEL = "Only sessions that used a model with this text in its name."


class DateParam(click.ParamType[datetime]):
    """Date, month or time as in the query syntax. Converts to its start, or to the first moment after it."""

    name = "date"

    def __init__(self, *, is_end: bool = False) -> None:
        self._is_end = is_end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        is_utc = ctx is not None and ctx.params.get("is_utc", False)
        span = parse_date_range(value, datetime.now(UTC), UTC if is_utc else None)
        if span is None:
            self.fail(f"{value!r} is not a date. Use 2026-10-03, 2026-10, yesterday or 7d.", param, ctx)
        return span[1] if self._is_end else span[0]


class SourceParam(click.ParamType[str]):
    """Name of a source. The registry of sources is loaded only when the option is used."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return _source_choice().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return _source_choice().get_metavar(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        return _source_choice().shell_complete(ctx, param, incomplete)


def _source_choice() -> click.Choice[str]:
    from backscroll.history import History  # start-up time

    return click.Choice(History.source_names())


def workspace_option(command: F) -> F:
    """Add ``--workspace`` to a command."""
    return click.option(
        "--workspace",
        shell_complete=complete_names("workspace"),
        help="Only this workspace: its path, its name, the end of its path or, if remote, its host.",
    )(command)


def keep_secrets_option(command: F) -> F:
    """Add ``--keep-secrets`` to a command that redacts by default."""
    help_ = "Do not replace keys, tokens and passwords with placeholders."
    return click.option("--keep-secrets", is_flag=True, help=help_)(command)


def _add_filters(command: F, *, since: str, until: str, branch: str, model: str) -> F:
    for option in reversed(
        [
            click.option("--source", type=SourceParam(), help="Only sessions from this source."),
            workspace_option,
            click.option("--since", type=DateParam(), help=f"{since} {_DATE_FORMATS}"),
            click.option("--until", type=DateParam(is_end=True), help=until),
            click.option("--branch", shell_complete=complete_names("branch"), help=branch),
            click.option("--model", shell_complete=complete_names("model"), help=model),
            click.option("--has-edits", is_flag=True, help="Only sessions that changed files."),
            click.option("--gone", is_flag=True, help="Only sessions that the tool has deleted."),
            click.option(
                "--tag",
                "tags",
                multiple=True,
                metavar="TAG",
                shell_complete=complete_tags,
                help="Only sessions with this tag. Repeatable.",
            ),
            click.option("--starred", is_flag=True, help="Only starred sessions."),
        ]
    ):
        command = option(command)
    return command


def session_filters(command: F) -> F:
    """Add options that select sessions, and ``--subagents``."""
    return top_session_filters(click.option("--subagents", is_flag=True, help="Include subagents.")(command))


def top_session_filters(command: F) -> F:
    """Add options that select sessions with their subagents."""
    return _add_filters(
        command,
        since="Only sessions active on or after this date.",
        until="Only sessions started on or before this date.",
        branch=_SESSION_BRANCH,
        model=_SESSION_MODEL,
    )


def message_filters(command: F) -> F:
    """Add options that select messages, and the sessions they are in."""
    return _add_filters(
        command,
        since="Only messages on or after this date.",
        until="Only messages on or before this date.",
        branch="Only messages on this git branch.",
        model="Only messages from models with this text in their name.",
    )


def stats_filters(command: F) -> F:
    """Add options that select sessions, and the time range in which their messages count."""
    return _add_filters(
        command,
        since="Only messages on or after this date.",
        until="Only messages on or before this date.",
        branch=_SESSION_BRANCH,
        model=_SESSION_MODEL,
    )


def page_options(command: F) -> F:
    """Add ``--limit`` and ``--offset`` to a command."""
    command = click.option("--offset", default=0, show_default=True, help="Results to skip.")(command)
    return click.option(
        "-n", "--limit", default=PAGE_SIZE, show_default=True, help="Results to show, at most 1000."
    )(command)


def make_query_filters(options: dict[str, Any]) -> dict[str, str | tuple[str, ...]]:
    """Return the shared options as filters of the query syntax, by name; without dates."""
    filters = {name: options[name] for name in ("source", "workspace", "branch", "model")}
    flags = tuple(name for name in ("gone", "starred") if options[name])
    filters |= {"has": "edits" if options["has_edits"] else None, "is": flags, "tag": options["tags"]}
    return {name: value for name, value in filters.items() if value}


def has_filters(options: dict[str, Any]) -> bool:
    """Return whether the user passed an option of `session_filters`."""
    return any(options.values())


def make_filter(options: dict[str, Any]) -> "Filter":
    """Return the shared options as a filter."""
    from backscroll.model import Filter  # start-up time: --help needs no values

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
        with_subagents=options.get("subagents", False),
    )


def read_options(command: F) -> F:
    """Add ``--json``, ``--no-sync`` and ``--no-wait`` to a command that reads sessions."""
    command = _sync_options(command, waiting="--json and pipes wait")
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def launch_options(command: F) -> F:
    """Add ``--print``, ``--json``, ``--no-sync`` and ``--no-wait`` to a command that starts a program."""
    command = _sync_options(command, waiting="--json and pipes wait")
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the command as JSON; do not run it."),
        click.option("--print", "only_print", is_flag=True, help="Print the command; do not run it."),
    ):
        command = option(command)
    return command


def sync_options(command: F) -> F:
    """Add ``--no-sync`` and ``--no-wait`` to a command without ``--json``."""
    return _sync_options(command, waiting="pipes wait")


def _sync_options(command: F, *, waiting: str) -> F:
    return no_sync_option(
        click.option(
            "--no-wait",
            is_flag=True,
            expose_value=False,
            callback=_set_no_wait,
            help=f"Do not wait for a long sync. Without this, {waiting} until it is complete.",
        )(command)
    )


def no_sync_option(command: F) -> F:
    """Add ``--no-sync`` to a command."""
    help_ = "Use the archive as it is; do not sync first."
    return click.option("--no-sync", is_flag=True, help=help_)(command)


def _set_no_wait(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.obj.no_wait = value


def sync_before_reading(
    history: "History", *, wanted_sessions: int = PAGE_SIZE, for_search: bool = False
) -> None:
    """Sync. On a terminal, hand a long sync over to a background process after about a second.

    Pipes and JSON documents wait until the sync is complete, unless ``--no-wait`` is given. If the archive is
    read-only, print a warning and go on.
    """
    ctx = click.get_current_context()
    if ctx.obj.backup is not None:
        return
    incomplete: str | None = None
    is_patient = (ctx.params.get("as_json") or not sys.stdout.isatty()) and not ctx.obj.no_wait
    try:
        with ProgressBar("Syncing") as bar:
            if is_patient:
                is_current = history.sync(bar.step, wait=not history.is_complete) is not None
            else:
                status = history.background_sync.refresh(
                    bar.step, wanted_sessions=wanted_sessions, for_search=for_search
                )
                is_current = not status.is_running
                incomplete = None if status.is_complete else incomplete_line(status)
    except ArchiveError as error:
        if not error.is_readable:
            raise
        click.echo(f"Could not sync. {as_sentence(str(error))} Results may be out of date.", err=True)
        return
    if incomplete is not None:
        click.echo(incomplete, err=True)
    elif not is_current:
        click.echo("Another process is syncing. Results may be out of date.", err=True)
    for line in permission_lines(history.unreadable_paths()):
        click.echo(line, err=True)


def incomplete_line(status: "SyncStatus") -> str:
    """Return the progress of the background sync, and the commands that wait for it or stop it."""
    done = f"{status.percent} % done" if status.percent is not None else "just started"
    if status.remaining_seconds is not None:
        done += f", {format_remaining(status.remaining_seconds)} left"
    return (
        f"Syncing in the background: {done}. Results are incomplete until then.\n"
        f"Run '{command_hint('sync')}' to wait for it, '{command_hint('sync --stop')}' to stop it."
    )
