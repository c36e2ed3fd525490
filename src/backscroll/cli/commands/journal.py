"""``backscroll journal``: write a journal of commits and their conversations."""

import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from backscroll.cli.app import CommandGroup
from backscroll.cli.options import (
    DateParam,
    json_option,
    read_options,
    repository_option,
    sync_before_reading,
)
from backscroll.cli.output import write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.documents import to_document
from backscroll.errors import BackscrollError, UsageError
from backscroll.model.journal import PeriodKind
from backscroll.render import journal as render

if TYPE_CHECKING:
    from backscroll.history.history import History
    from backscroll.model.journal import NoteKind


F = TypeVar("F", bound=Callable[..., Any])
_PERIODS: dict[PeriodKind, str] = {  # with examples
    "day": "2026-07-13", "week": "2026-W29", "month": "2026-07", "quarter": "2026-Q3", "year": "2026"
}  # fmt: skip


class _JournalGroup(CommandGroup):
    """Group with a default command: ``journal HEAD`` is ``journal write HEAD``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_own = bool(args) and (args[0] in self.commands or args[0] in ("-h", "--help"))
        if not is_own and not ctx.resilient_parsing:  # completion offers the subcommands
            args = ["write", *args]
        return super().parse_args(ctx, args)


_journal_option = click.option(
    "--journal",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of the journal. Default: the one in config.toml, else one beside the archive.",
)


def _period_options(command: F) -> F:
    for kind, example in reversed(_PERIODS.items()):
        help_ = f"Write the missing entries and the summary of a {kind}, such as {example}."
        command = click.option(
            f"--{kind}",
            is_flag=False,
            flag_value="today",
            metavar=kind.upper(),
            help=f"{help_} Default: the current {kind}.",
        )(command)
    return command


@click.group("journal", cls=_JournalGroup)
def command() -> None:
    """Write a journal of commits and their conversations.

    Without a subcommand, 'write' runs: 'backscroll journal HEAD' is 'backscroll journal write HEAD'. Its
    options are in 'backscroll journal write --help'.

    \b
    Examples:
      backscroll journal
      backscroll journal --week
      backscroll journal reflect "The cache was the wrong fix."
    """


@command.command("write")
@click.argument("commit", required=False)
@repository_option
@_journal_option
@_period_options
@click.option("--since", type=DateParam(), help="Write the missing entries of all commits since this date.")
@click.option(
    "--model", metavar="NAME", help="Let this model of the program 'llm' write the entry. Default: none."
)
@click.option("--no-model", is_flag=True, help="Use no model, even if config.toml names one.")
@click.option("--print", "is_printed", is_flag=True, help="Also print the entry.")
@click.option(
    "--quiet", is_flag=True, help="Print nothing and never fail, for hooks. Errors go to journal.log."
)
@read_options
@click.pass_obj
def write(
    setup: Setup,
    /,
    commit: str | None,
    repository: Path,
    folder: Path | None,
    since: datetime | None,
    model: str | None,
    no_model: bool,
    is_printed: bool,
    quiet: bool,
    as_json: bool,
    **periods: str | None,
) -> None:
    """Write the entry of a commit, or the missing entries of a period.

    COMMIT is a hash or any name that git knows. Default: HEAD. An entry has a summary, a technical synopsis,
    accomplishments, frustrations, decisions, open items, quotes, files and the commit. It is extracted from
    the sessions behind the commit on this machine. A model is used only with --model or if config.toml names
    one. Secrets are redacted.

    A commit has one entry. Running the command again updates it, unless you edited it. Merges and commits
    that change only the journal have none. Nothing is written into the repository, unless --journal or
    config.toml names a folder in it.

    \b
    Examples:
      backscroll journal 4ddad8c --print
      backscroll journal --since 2026-07
      backscroll journal --week 2026-W29 --journal journal
      backscroll journal HEAD --model gpt-5-mini
    """
    named = [(kind, value) for kind in _PERIODS if (value := periods[kind]) is not None]
    if len(named) + (since is not None) > 1:
        raise click.UsageError("Use one of --day, --week, --month, --quarter, --year and --since.")
    is_range = bool(named) or since is not None
    if is_range and commit is not None:
        raise click.UsageError("Name a commit or a period, not both.")
    commit = commit or "HEAD"
    if quiet:
        _write_quietly(setup, commit, repository, folder)
        return
    with setup.history() as history:
        sync_before_reading(history)
        chosen = None if no_model else model or history.settings.journal_model
        if is_range:
            _backfill(
                history, repository, folder, named[0] if named else None, since, chosen, as_json=as_json
            )
            return
        with ProgressBar("Comparing") as bar:
            result = history.journal.write(commit, repository, folder=folder, model=chosen, progress=bar.step)
    if result.message is not None:
        click.echo(result.message, err=True)
    if as_json:
        write_json(render.journal_document(result))
        return
    if is_printed and result.entry is not None:
        click.echo(render.entry_markdown(result.entry))
    click.echo(render.result_line(result), err=is_printed)


def _backfill(
    history: "History",
    repository: Path,
    folder: Path | None,
    period: tuple[PeriodKind, str] | None,
    since: datetime | None,
    model: str | None,
    *,
    as_json: bool,
) -> None:
    with ProgressBar("Writing") as bar:
        result = history.journal.backfill(
            repository, period=period, since=since, folder=folder, model=model, progress=bar.step
        )
    if result.message is not None:
        click.echo(result.message, err=True)
    if as_json:
        write_json(to_document(result))
        return
    for line in render.backfill_lines(result):
        click.echo(line)


def _write_quietly(setup: Setup, commit: str, repository: Path, folder: Path | None) -> None:
    """Write an entry without output. An error is added to ``journal.log`` beside the archive."""
    with suppress(BackscrollError, OSError), setup.history() as history:  # no archive, no log
        try:
            if not setup.no_sync:
                history.sync(wait=True)
            history.journal.write(commit, repository, folder=folder, model=history.settings.journal_model)
        except (BackscrollError, OSError) as error:
            history.journal.log_failure(repository, commit, error)


def _add_note(
    setup: Setup,
    kind: "NoteKind",
    words: tuple[str, ...],
    repository: Path,
    folder: Path | None,
    *,
    as_json: bool,
) -> None:
    text = " ".join(words) if words else "" if sys.stdin.isatty() else sys.stdin.read()
    if not text.strip():
        raise UsageError("There is no text. Pass it as an argument or on standard input.")
    with setup.history() as history:
        note = history.journal.add_note(kind, text, repository, folder=folder)
    if as_json:
        write_json(to_document(note))
        return
    click.echo(f"Added to {note.path}")


@command.command("reflect")
@click.argument("text", nargs=-1)
@repository_option
@_journal_option
@json_option
@click.pass_obj
def reflect(
    setup: Setup, text: tuple[str, ...], repository: Path, folder: Path | None, as_json: bool
) -> None:
    """Add a reflection to today's journal.

    Without TEXT, standard input is read.

    \b
    Examples:
      backscroll journal reflect "The cache was the wrong fix."
    """
    _add_note(setup, "reflection", text, repository, folder, as_json=as_json)


@command.command("capture")
@click.argument("text", nargs=-1)
@repository_option
@_journal_option
@json_option
@click.pass_obj
def capture(
    setup: Setup, text: tuple[str, ...], repository: Path, folder: Path | None, as_json: bool
) -> None:
    """Add context for later readers to today's journal.

    Without TEXT, standard input is read.

    \b
    Examples:
      backscroll journal capture "Waiting for the operator to confirm the time zone."
    """
    _add_note(setup, "context", text, repository, folder, as_json=as_json)


@command.command("show")
@click.argument("day", default="today")
@repository_option
@_journal_option
@json_option
@click.pass_obj
def show(setup: Setup, day: str, repository: Path, folder: Path | None, as_json: bool) -> None:
    """Print the journal of a day.

    DAY is a date, 'today' or 'yesterday'. Default: today.

    \b
    Examples:
      backscroll journal show yesterday
    """
    with setup.history() as history:
        text = history.journal.read(day, repository, folder=folder)
    if as_json:
        write_json({"day": day, "text": text})
    elif text is None:
        click.echo(f"The journal has nothing for {day}.", err=True)
    else:
        click.echo(render.without_markers(text), nl=False)


@command.command("path")
@repository_option
@_journal_option
@json_option
@click.pass_obj
def path(setup: Setup, repository: Path, folder: Path | None, as_json: bool) -> None:
    """Print the folder of the journal.

    \b
    Examples:
      backscroll journal path
    """
    with setup.history() as history:
        found = history.journal.folder(repository, folder)
    if as_json:
        write_json({"path": str(found)})
    else:
        click.echo(str(found))
