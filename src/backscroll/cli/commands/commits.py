"""``backscroll commits`` and ``backscroll commit``: the sessions behind commits."""

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from backscroll.cli.options import DateParam, page_options, read_options, sync_before_reading
from backscroll.cli.output import Color, color_option, detect_screen, write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.errors import SessionNotFoundError
from backscroll.history.history import History
from backscroll.model.commit import CommitSummary
from backscroll.model.session import SessionSummary
from backscroll.render.commits import commit_document, commit_lines, commits_document, commits_lines
from backscroll.render.terminal.session_table import page_footer
from backscroll.render.terminal.text import Style

F = TypeVar("F", bound=Callable[..., Any])


def repository_option(command: F) -> F:
    """Add ``--repo`` to a command."""
    return click.option(
        "--repo",
        "repository",
        type=click.Path(path_type=Path),
        default=".",
        metavar="DIR",
        help="Repository: any folder in a checkout, or a bare clone. Default: the current folder.",
    )(command)


@click.command("commits")
@repository_option
@click.option("--since", type=DateParam(), help="Only commits on or after this date.")
@click.option("--until", type=DateParam(is_end=True), help="Only commits on or before this date.")
@click.option("--ref", metavar="REVISION", help="Only commits that this branch, tag or commit contains.")
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
    limit: int,
    offset: int,
    is_all: bool,
    color: Color,
    as_json: bool,
    no_sync: bool,
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
        if not no_sync:
            sync_before_reading(history)
        with ProgressBar("Comparing") as bar:
            page = history.list_commits(
                repository,
                limit=None if is_all else limit,
                offset=0 if is_all else offset,
                since=since,
                until=until,
                ref=ref,
                progress=bar.step,
            )
        titles = {} if as_json else _sessions(history, page.data)
    if as_json:
        write_json(commits_document(page))
        return
    screen = detect_screen(color)
    style = Style(is_colored=screen.is_colored)
    if not page.data:
        total = page.pagination.total
        if total:
            notice = f"No commits on this page ({total:,} in total)."
        else:
            has_filter = since is not None or until is not None
            notice = "No commits match." if has_filter else "The repository has no commits yet."
        screen.write_notice([notice])
        return
    screen.page(commits_lines(page.data, titles, style=style))
    if footer := page_footer(page):
        click.echo(footer, err=True)


@click.command("commit")
@click.argument("sha")
@repository_option
@color_option
@read_options
@click.pass_obj
def commit(setup: Setup, /, sha: str, repository: Path, color: Color, as_json: bool, no_sync: bool) -> None:
    """Show the sessions behind a commit, and the evidence.

    SHA is a hash, the start of one, or any name that git knows, such as HEAD. Prints for each session the
    score and its parts, and the turns that led to the commit. 'backscroll show REF' prints the session.

    \b
    Examples:
      backscroll commit HEAD
      backscroll commit 4ddad8c --repo ~/projects/tideline --json
    """
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        with ProgressBar("Comparing") as bar:
            details = history.get_commit(sha, repository, progress=bar.step)
        titles = {} if as_json else _sessions(history, [details])
    if as_json:
        write_json(commit_document(details))
        return
    screen = detect_screen(color)
    screen.page(commit_lines(details, titles, style=Style(is_colored=screen.is_colored)))


def _sessions(history: History, commits: Iterable[CommitSummary]) -> dict[str, SessionSummary]:
    """Return the sessions of commits by ref."""
    return find_sessions(history, {session.session_ref for commit in commits for session in commit.sessions})


def find_sessions(history: History, refs: Iterable[str]) -> dict[str, SessionSummary]:
    """Return sessions by ref."""
    found: dict[str, SessionSummary] = {}
    for ref in refs:
        try:
            found[ref] = history.find(ref)
        except SessionNotFoundError:
            continue  # erased by another process in the meantime
    return found
