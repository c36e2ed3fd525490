"""Options and arguments that several commands share.

Options that select sessions; options that read, with the sync before it; types of values; commands that
take a query; values for shell completion.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from backscroll.cli.messages import as_sentence, command_hint, permission_lines
from backscroll.cli.progress import ProgressBar
from backscroll.config import archive_home, this_machine
from backscroll.errors import ArchiveError, BackscrollError
from backscroll.model.dates import parse_date_range
from backscroll.model.text import one_line
from backscroll.render.humanize import format_remaining

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from backscroll.filters import FilterKind, SessionFilter
    from backscroll.history import CompletionNames
    from backscroll.history.history import History
    from backscroll.model.sync import SyncStatus


F = TypeVar("F", bound=Callable[..., Any])
EVERYTHING_HELP = "Include messages that were rewound or retried, and text that the tool added itself."
PAGE_SIZE = 20
MAX_COMPLETIONS = 100
MAX_TITLE_CHARS = 60
MAX_NAME_CHARS = 300


def filter_options(*, of_messages: tuple[FilterKind, ...] = (), only: str | None = None) -> Callable[[F], F]:
    """Add an option for each filter. Those of the kinds in ``of_messages`` select messages, not sessions."""
    from backscroll.filters import FILTERS  # start-up time: the other commands do not need the model

    def decorate(command: F) -> F:
        for each in reversed(FILTERS):
            if only in (None, each.name):
                help_ = each.help(of_messages=each.kind in of_messages)
                command = _filter_option(each, help_)(command)
        return command

    return decorate


def _filter_option(filter_: SessionFilter, help_: str) -> Callable[[F], F]:
    name = f"--{filter_.name.replace('_', '-')}"
    if filter_.name == "source":
        return click.option(name, type=SOURCE_NAME, help=help_)
    match filter_.kind:
        case "date":
            return click.option(name, type=DateParam(is_end=filter_.name == "until"), help=help_)
        case "flag":
            return click.option(name, is_flag=True, help=help_)
        case "tags":
            help_ = f"{help_} Repeatable."
            return click.option(name, multiple=True, metavar="TAG", shell_complete=complete_tags, help=help_)
    return click.option(name, shell_complete=_complete_values, help=help_)


def has_filters(options: dict[str, Any]) -> bool:
    """Return whether the user passed an option of `filter_options`."""
    return any(options.values())


def page_options(command: F) -> F:
    """Add ``--limit`` and ``--offset`` to a command."""
    command = click.option("--offset", default=0, show_default=True, help="Results to skip.")(command)
    return click.option(
        "-n", "--limit", default=PAGE_SIZE, show_default=True, help="Results to show, at most 1000."
    )(command)


def read_options(command: F) -> F:
    """Add ``--json``, ``--no-sync`` and ``--no-wait`` to a command that reads sessions."""
    return json_option(_sync_options(command, "--json and pipes wait"))


def launch_options(command: F) -> F:
    """Add ``--print``, ``--json``, ``--no-sync`` and ``--no-wait`` to a command that starts a program."""
    command = _sync_options(command, "--json and pipes wait")
    json_help, print_help = "Print the command as JSON; do not run it.", "Print the command; do not run it."
    command = click.option("--json", "as_json", is_flag=True, help=json_help)(command)
    return click.option("--print", "only_print", is_flag=True, help=print_help)(command)


def sync_options(command: F) -> F:
    """Add ``--no-sync`` and ``--no-wait`` to a command without ``--json``."""
    return _sync_options(command, "pipes wait")


def _sync_options(command: F, waiting: str) -> F:
    no_wait = click.option(
        "--no-wait",
        is_flag=True,
        expose_value=False,
        callback=_keep_in_setup,
        help=f"Do not wait for a long sync. Without this, {waiting} until it is complete.",
    )
    return no_sync_option(no_wait(command))


def _keep_in_setup(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    setattr(ctx.obj, param.name or "", value)


repository_option = click.option(
    "--repo",
    "repository",
    type=click.Path(path_type=Path),
    default=".",
    metavar="DIR",
    help="Repository: any folder in a checkout, or a bare clone. Default: the current folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
keep_secrets_option = click.option(
    "--keep-secrets", is_flag=True, help="Do not replace keys, tokens and passwords with placeholders."
)
no_sync_option = click.option(
    "--no-sync",
    is_flag=True,
    expose_value=False,
    callback=_keep_in_setup,
    help="Use the archive as it is; do not sync first.",
)
subagents_option = click.option("--subagents", is_flag=True, help="Include subagents.")


def sync_before_reading(
    history: History, *, wanted_sessions: int = PAGE_SIZE, for_search: bool = False
) -> None:
    """Sync. On a terminal, hand a long sync over to a background process after about a second.

    Does nothing with ``--no-sync`` or ``--backup``. Pipes and JSON documents wait until the sync is complete,
    unless ``--no-wait`` is given. If the archive is read-only, print a warning and go on.
    """
    ctx = click.get_current_context()
    if ctx.obj.no_sync or ctx.obj.backup is not None:
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


def incomplete_line(status: SyncStatus) -> str:
    """Return the progress of the background sync, and the commands that wait for it or stop it."""
    done = f"{status.percent} % done" if status.percent is not None else "just started"
    if status.remaining_seconds is not None:
        done += f", {format_remaining(status.remaining_seconds)} left"
    return (
        f"Syncing in the background: {done}. Results are incomplete until then.\n"
        f"Run '{command_hint('sync')}' to wait for it, '{command_hint('sync --stop')}' to stop it."
    )


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


class LazyChoice(click.ParamType[str]):
    """One of some names, such as those of sources. They are loaded only when the parameter is used."""

    name = "choice"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return self._choice.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self._choice.get_metavar(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return self._choice.shell_complete(ctx, param, incomplete)

    @property
    def _choice(self) -> click.Choice[str]:
        return click.Choice([*self._names()])


def _source_names() -> tuple[str, ...]:
    from backscroll.history.history import History  # start-up time

    return History.source_names()


SOURCE_NAME = LazyChoice(_source_names)


class QueryCommand(click.Command):
    """Command with a query as its arguments, where ``-word`` excludes a word.

    A short option counts only as a token of its own: ``-n 5`` is an option, ``-nginx`` an excluded word.
    Without other arguments, ``-h`` prints the help even if it is not a help option.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args == ["-h"] and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, self._words_last(ctx, args))

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None and "-h" not in option.opts:
            option.help = "Show this message and exit. Also -h, if it is the only argument."
        return option

    def _words_last(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the options with their values, then ``--``, then the words."""
        names = {name: param for param in self.get_params(ctx) for name in param.opts}
        options: list[str] = []
        words: list[str] = []
        rest = iter(args)
        for token in rest:
            param = names.get(token)
            if token == "--":
                words += rest
            elif isinstance(param, click.Option):
                options.append(token)
                if not param.is_flag:
                    value = next(rest, None)
                    if value is None:
                        return options  # click reports the missing value
                    options.append(value)
            elif token.startswith("--"):  # with "=", or unknown
                options.append(token)
            else:
                words.append(token)
        return [*options, "--", *words]


def complete_refs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return session ids with this prefix, newest first, with titles as help."""
    from click.shell_completion import CompletionItem

    source, colon, prefix = incomplete.rpartition(":")
    given = set(ctx.params.get("refs") or ())

    def items(names: CompletionNames) -> list[CompletionItem]:
        return [
            CompletionItem(
                f"{source}{colon}{session.id}", help=one_line(session.title or "", MAX_TITLE_CHARS)
            )
            for session in names.sessions(prefix, source=source or None, limit=MAX_COMPLETIONS)
            if session.id not in given
        ]

    return _query_archive(ctx, items)


def _complete_values(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return values of the filter with this option, such as workspaces."""
    name = param.name or ""
    return _query_archive(ctx, lambda names: _with_prefix(names.values_of(name), incomplete))


def complete_tags(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return tags with this prefix."""
    return _query_archive(ctx, lambda names: _with_prefix(names.values_of("tag"), incomplete.lstrip("#")))


def complete_roles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return completions for the last role of a comma-separated list."""
    from click.shell_completion import CompletionItem

    from backscroll.model.message import Role  # start-up time: only this completion needs it

    before, comma, last = incomplete.rpartition(",")
    chosen = before.split(",")
    roles = [role for role in get_args(Role) if role.startswith(last) and role not in chosen]
    return [CompletionItem(f"{before}{comma}{role}") for role in roles]


def _with_prefix(names: Iterable[str], prefix: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    clean = (one_line(name, MAX_NAME_CHARS) for name in names)
    matching = [CompletionItem(name) for name in clean if name.casefold().startswith(prefix.casefold())]
    return matching[:MAX_COMPLETIONS]


def _query_archive(
    ctx: click.Context, query: Callable[[CompletionNames], list[CompletionItem]]
) -> list[CompletionItem]:
    """Return the result of a query; an empty list if the archive is missing or cannot be read.

    Imports neither `History` nor the model: that takes longer than the query.
    """
    from backscroll.history import CompletionNames

    try:
        with CompletionNames(
            archive_home(ctx.find_root().params.get("home"), this_machine()) / "archive.db"
        ) as names:
            return query(names)
    except (BackscrollError, OSError):
        return []  # an error message would disturb the command line
