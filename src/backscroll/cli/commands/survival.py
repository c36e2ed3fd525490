"""``backscroll survival``: lines that sessions wrote, and how many of them still exist."""

from datetime import datetime
from pathlib import Path
from typing import Literal

import click

from backscroll.cli.commands.commits import find_sessions, repository_option
from backscroll.cli.options import DateParam, read_options, sync_before_reading
from backscroll.cli.output import Color, color_option, detect_screen, write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.render.commits import survival_document, survival_lines, survival_rows
from backscroll.render.terminal.text import Style


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
def command(
    setup: Setup,
    /,
    by: Literal["session", "model", "month"],
    repository: Path,
    since: datetime | None,
    ref: str | None,
    color: Color,
    as_json: bool,
    no_sync: bool,
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
        if not no_sync:
            sync_before_reading(history)
        with ProgressBar("Comparing") as bar:
            rows = history.commits.survival(repository, by=by, since=since, ref=ref, progress=bar.step)
        screen = detect_screen(color)
        is_titled = by == "session" and not as_json and screen.width is not None
        titles = find_sessions(history, [row.key for row in rows if row.key]) if is_titled else {}
    if as_json:
        write_json(survival_document(rows))
    elif not rows:
        screen.write_notice(["No session wrote lines into this repository."])
    elif screen.width is None:
        screen.write(survival_rows(rows))
    else:
        style = Style(is_colored=screen.is_colored)
        screen.page(survival_lines(rows, by, titles, style=style, width=screen.width))
