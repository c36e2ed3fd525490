"""``backscroll commits``, ``commit``, ``blame`` and ``survival``: the sessions behind commits and lines."""

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Literal

import click

from backscroll.cli.app import CommandGroup
from backscroll.cli.options import (
    DateParam,
    json_option,
    page_options,
    read_options,
    repository_option,
    sync_before_reading,
)
from backscroll.cli.output import Color, color_option, detect_screen, write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.errors import SessionNotFoundError
from backscroll.history.history import History
from backscroll.model.commit import CommitSummary
from backscroll.model.session import SessionSummary
from backscroll.model.text import sanitize
from backscroll.render import commits as render
from backscroll.render.humanize import short_ref, short_sha
from backscroll.render.session_table import page_footer

_WITH_LINES = re.compile(r"(.+):(\d{1,9})(?:-(\d{1,9}))?")
window_option = click.option(
    "--window",
    type=click.IntRange(min=0),
    metavar="MINUTES",
    help="Of a commit without a session, name the sessions that were open so long before it. 0: none."
    " Default: commits.window in config.toml, or 30.",
)


@click.command("commits")
@repository_option
@click.option("--since", type=DateParam(), help="Only commits on or after this date.")
@click.option("--until", type=DateParam(is_end=True), help="Only commits on or before this date.")
@click.option("--ref", metavar="REVISION", help="Only commits that this branch, tag or commit contains.")
@window_option
@page_options
@click.option("--all", "is_all", is_flag=True, help="All commits, without pages.")
@color_option
@read_options
@click.pass_obj
def commits(
    setup: Setup,
    /,
    repository: Path,
    since: datetime | None,
    until: datetime | None,
    ref: str | None,
    window: int | None,
    limit: int,
    offset: int,
    is_all: bool,
    color: Color,
    as_json: bool,
) -> None:
    """List commits with the sessions that led to them.

    Lists the commits of all local branches, newest first, without merges. Sessions are found by their
    'git commit' calls, the lines that they wrote, the files that they changed, and by time, folder and
    branch. They are also found after a squash or rebase, and in a clone in another folder. Nothing is
    written to the repository.

    \b
    Examples:
      backscroll commits
      backscroll commits --repo ~/projects/tideline --since 7d
      backscroll commits --ref main --all --json
    """
    with setup.history() as history:
        sync_before_reading(history)
        with ProgressBar("Comparing") as bar:
            page = history.list_commits(
                repository,
                limit=None if is_all else limit,
                offset=0 if is_all else offset,
                since=since,
                until=until,
                ref=ref,
                window=window,
                progress=bar.step,
            )
        titles = {} if as_json else _sessions(history, page.data)
    if as_json:
        write_json(render.commits_document(page))
        return
    screen = detect_screen(color)
    if not page.data:
        total = page.pagination.total
        if total:
            notice = f"No commits on this page ({total:,} in total)."
        else:
            has_filter = since is not None or until is not None
            notice = "No commits match." if has_filter else "The repository has no commits yet."
        screen.write_notice([notice])
        return
    screen.page(render.commits_lines(page.data, titles, style=screen.style))
    if footer := page_footer(page):
        click.echo(footer, err=True)


class _CommitGroup(CommandGroup):
    """Group with a default command: ``commit HEAD`` is ``commit show HEAD``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_own = bool(args) and (args[0] in self.commands or args[0] in ("-h", "--help"))
        if args and not is_own and not ctx.resilient_parsing:  # completion offers the subcommands
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group("commit", cls=_CommitGroup)
def commit() -> None:
    """Show the sessions behind a commit, or link one by hand.

    Without a subcommand, 'show' runs: 'backscroll commit HEAD' is 'backscroll commit show HEAD'. Its options
    are in 'backscroll commit show --help'.

    \b
    Examples:
      backscroll commit HEAD
      backscroll commit 4ddad8c --repo ~/projects/tideline --json
      backscroll commit link HEAD 0f3c9a
    """


@commit.command("show")
@click.argument("sha")
@repository_option
@window_option
@color_option
@read_options
@click.pass_obj
def show_commit(
    setup: Setup, /, sha: str, repository: Path, window: int | None, color: Color, as_json: bool
) -> None:
    """Show the sessions behind a commit, and the evidence.

    SHA is a hash, the start of one, or any name that git knows, such as HEAD. Prints for each session the
    score and its parts, and the turns that led to the commit. 'backscroll show REF' prints the session.

    \b
    Examples:
      backscroll commit HEAD
      backscroll commit 4ddad8c --repo ~/projects/tideline --json
    """
    with setup.history() as history:
        sync_before_reading(history)
        with ProgressBar("Comparing") as bar:
            details = history.get_commit(sha, repository, window=window, progress=bar.step)
        titles = {} if as_json else _sessions(history, [details])
    if as_json:
        write_json(render.commit_document(details))
        return
    screen = detect_screen(color)
    screen.page(render.commit_lines(details, titles, style=screen.style))


@commit.command("link")
@click.argument("sha")
@click.argument("ref")
@repository_option
@json_option
@click.pass_obj
def link(setup: Setup, /, sha: str, ref: str, repository: Path, as_json: bool) -> None:
    """Link a session to a commit.

    The link wins over all evidence. It stays after a rebuild of the archive, and after a rebase or an amend
    that does not change the lines of the commit.

    \b
    Examples:
      backscroll commit link HEAD 0f3c9a
      backscroll commit link 4ddad8c claude-code:9e86bb48 --repo ~/projects/tideline
    """
    _set_link(setup, sha, ref, repository, as_json, is_linked=True)


@commit.command("unlink")
@click.argument("sha")
@click.argument("ref")
@repository_option
@json_option
@click.pass_obj
def unlink(setup: Setup, /, sha: str, ref: str, repository: Path, as_json: bool) -> None:
    """Remove a session from a commit, whatever the evidence is.

    'backscroll commit link' adds it again.

    \b
    Example:
      backscroll commit unlink HEAD 0f3c9a
    """
    _set_link(setup, sha, ref, repository, as_json, is_linked=False)


def _set_link(setup: Setup, sha: str, ref: str, repository: Path, as_json: bool, *, is_linked: bool) -> None:
    with setup.history() as history:
        change = history.commits.link if is_linked else history.commits.unlink
        session = change(sha, ref, repository)
        details = history.get_commit(sha, repository)
    if as_json:
        write_json(render.commit_document(details))
        return
    name = short_ref(session.session_ref)
    verb, preposition = ("Linked", "to") if is_linked else ("Removed", "from")
    click.echo(f"{verb} {name} {preposition} {short_sha(details.sha)}  {sanitize(details.subject)}")


def _sessions(history: History, commits: Iterable[CommitSummary]) -> dict[str, SessionSummary]:
    """Return the sessions of commits by ref."""
    return find_sessions(history, {ref for commit in commits for ref in commit.refs})


def find_sessions(history: History, refs: Iterable[str]) -> dict[str, SessionSummary]:
    """Return sessions by ref."""
    found: dict[str, SessionSummary] = {}
    for ref in refs:
        try:
            found[ref] = history.find(ref)
        except SessionNotFoundError:
            continue  # erased by another process in the meantime
    return found


@click.command("blame")
@click.argument("file", metavar="FILE[:LINE[-LINE]]", type=click.Path())
@click.option(
    "--repo",
    "repository",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Repository: any folder in a checkout, or a bare clone. FILE is then relative to its root."
    " Default: the one that contains FILE.",
)
@click.option(
    "--ref", metavar="REVISION", help="The file as of this branch, tag or commit. Default: as it is now."
)
@color_option
@read_options
@click.pass_obj
def blame(
    setup: Setup, /, file: str, repository: Path | None, ref: str | None, color: Color, as_json: bool
) -> None:
    """Show the session and prompt behind each line of a file.

    For each line, prints the commit, the session that wrote it, and the prompt of its turn. Lines that no
    assistant wrote have no session. Moved and copied lines keep their commit and session. Uncommitted lines
    are included. In a pipe: line, hash, session, message, prompt and text, separated by tabs.

    \b
    Examples:
      backscroll blame src/prices.py
      backscroll blame src/prices.py:40-60
      backscroll blame src/prices.py --ref v1.2 --json
    """
    path, lines = _split_lines(file, repository)
    with setup.history() as history:
        sync_before_reading(history)
        with ProgressBar("Comparing") as bar:
            found = history.blame_file(path, repository, lines=lines, ref=ref, progress=bar.step)
        screen = detect_screen(color)
        refs = {line.session_ref for line in found if line.session_ref is not None}
        titles = {} if as_json or screen.width is None else find_sessions(history, refs)
    if as_json:
        write_json(render.blame_document(found))
        return
    if not found:
        screen.write_notice(["The file is empty."])
    elif screen.width is None:
        screen.write(render.blame_rows(found, style=screen.style))
    else:
        screen.page(render.blame_terminal_lines(found, titles, style=screen.style, width=screen.width))


def _split_lines(file: str, repository: Path | None) -> tuple[str, tuple[int, int] | None]:
    """Separate the lines from the path. A file whose name ends like lines has precedence."""
    match = _WITH_LINES.fullmatch(file)
    if match is None or Path(file).exists() or (repository is not None and (repository / file).exists()):
        return file, None
    first = int(match[2])
    return match[1], (first, int(match[3]) if match[3] is not None else first)


@click.command("survival")
@click.option(
    "--by",
    type=click.Choice(["session", "model", "month"]),
    default="session",
    show_default=True,
    help="What each row is.",
)
@repository_option
@click.option("--since", type=DateParam(), help="Only lines written on or after this date.")
@click.option(
    "--ref",
    metavar="REVISION",
    help="Revision in which lines count as alive: a branch, tag or commit. Default: HEAD.",
)
@color_option
@read_options
@click.pass_obj
def survival(
    setup: Setup,
    /,
    by: Literal["session", "model", "month"],
    repository: Path,
    since: datetime | None,
    ref: str | None,
    color: Color,
    as_json: bool,
) -> None:
    """Show how many lines of sessions still exist.

    Counts the lines that sessions wrote into a repository, those that were committed, and those that still
    exist in the last commit (alive). Also shows the cost of the sessions. Lines with fewer than four
    characters other than white space do not count.

    \b
    Examples:
      backscroll survival
      backscroll survival --by month --repo ~/projects/tideline
      backscroll survival --by model --since 2026-10 --json
    """
    with setup.history() as history:
        sync_before_reading(history)
        with ProgressBar("Comparing") as bar:
            rows = history.commits.survival(repository, by=by, since=since, ref=ref, progress=bar.step)
        screen = detect_screen(color)
        is_titled = by == "session" and not as_json and screen.width is not None
        titles = find_sessions(history, [row.key for row in rows if row.key]) if is_titled else {}
    if as_json:
        write_json(render.survival_document(rows))
    elif not rows:
        screen.write_notice(["No session wrote lines into this repository."])
    elif screen.width is None:
        screen.write(render.survival_rows(rows))
    else:
        screen.page(render.survival_lines(rows, by, titles, style=screen.style, width=screen.width))
