"""``backscroll blame``: the session and prompt behind each line of a file."""

import re
from pathlib import Path

import click

from backscroll.cli.commands.commits import find_sessions
from backscroll.cli.options import read_options, sync_before_reading
from backscroll.cli.output import Color, color_option, detect_screen, write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.render.commits import blame_document, blame_rows, blame_terminal_lines
from backscroll.render.terminal.text import Style

_WITH_LINES = re.compile(r"(.+):(\d{1,9})(?:-(\d{1,9}))?")


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
def command(
    setup: Setup,
    /,
    file: str,
    repository: Path | None,
    ref: str | None,
    color: Color,
    as_json: bool,
    no_sync: bool,
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
        if not no_sync:
            sync_before_reading(history)
        with ProgressBar("Comparing") as bar:
            found = history.blame_file(path, repository, lines=lines, ref=ref, progress=bar.step)
        screen = detect_screen(color)
        refs = {line.session_ref for line in found if line.session_ref is not None}
        titles = {} if as_json or screen.width is None else find_sessions(history, refs)
    if as_json:
        write_json(blame_document(found))
        return
    style = Style(is_colored=screen.is_colored)
    if not found:
        screen.write_notice(["The file is empty."])
    elif screen.width is None:
        screen.write(blame_rows(found, style=style))
    else:
        screen.page(blame_terminal_lines(found, titles, style=style, width=screen.width))


def _split_lines(file: str, repository: Path | None) -> tuple[str, tuple[int, int] | None]:
    """Separate the lines from the path. A file whose name ends like lines has precedence."""
    match = _WITH_LINES.fullmatch(file)
    if match is None or Path(file).exists() or (repository is not None and (repository / file).exists()):
        return file, None
    first = int(match[2])
    return match[1], (first, int(match[3]) if match[3] is not None else first)
