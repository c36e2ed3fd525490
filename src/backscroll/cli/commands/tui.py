"""``backscroll tui``: browse sessions in a full-screen terminal UI."""

import os
import sys

import click

from backscroll.cli.install_command import missing_extra_message
from backscroll.cli.messages import permission_lines, welcome_lines
from backscroll.cli.options import SOURCE_NAME, QueryCommand, incomplete_line, no_sync_option
from backscroll.cli.startup import Setup
from backscroll.errors import BackscrollError, UsageError

QUIT_TIMEOUT_SECONDS = 1.0  # wait for a running sync after the user quits


@click.command("tui", cls=QueryCommand)
@click.argument("words", nargs=-1)
@click.option("--source", type=SOURCE_NAME, help="Show only sessions from this source at first.")
@click.option(
    "--theme", type=click.Choice(["dark", "light"]), help="Color theme. Default: detected from the terminal."
)
@no_sync_option
@click.pass_obj
def command(setup: Setup, words: tuple[str, ...], source: str | None, theme: str | None) -> None:
    """Browse sessions in a full-screen terminal UI.

    With WORDS, starts with a search. Press ? to see all keys.

    \b
    Examples:
      backscroll tui
      backscroll tui clocks
    """
    try:
        import textual  # noqa: F401
    except ImportError as error:
        raise BackscrollError(missing_extra_message("The terminal UI", "tui")) from error
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The terminal UI needs a terminal. Use 'backscroll list' or 'backscroll search' instead."
        )
    if os.environ.get("TERM") == "dumb":
        raise UsageError(
            "The terminal cannot show it (TERM=dumb). Use 'backscroll list' or 'backscroll search' instead."
        )
    from backscroll.tui.app import Backscroll
    from backscroll.tui.session_list import ListFilter  # needs textual, an optional dependency

    setup.history().close()  # reports invalid settings before the UI hides the terminal
    screen = Backscroll(
        setup.history,
        welcome=welcome_lines,
        list_filter=ListFilter(source=source),
        search_query=" ".join(words),
        theme=theme,
        auto_sync=not setup.no_sync,
        permission_lines=permission_lines,
    )
    screen.run()
    if not screen.wait_for_workers(QUIT_TIMEOUT_SECONDS):
        click.echo(
            "A sync was interrupted. Everything read so far is saved; the next sync continues.", err=True
        )
        # A normal exit would wait for the thread. Killing it is safe: each unit is one transaction.
        os._exit(screen.return_code or 0)
    if not setup.no_sync:
        _report_background_sync(setup)
    sys.exit(screen.return_code or 0)


def _report_background_sync(setup: Setup) -> None:
    with setup.history() as history:
        status = history.background_sync.status()
    if status.is_running and not status.is_complete:
        click.echo(incomplete_line(status), err=True)
