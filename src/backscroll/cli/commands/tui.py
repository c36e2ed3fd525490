"""``backscroll tui``: the terminal UI."""

import os
import sys

import click

from backscroll.cli.hints import welcome_lines
from backscroll.cli.setup import Setup
from backscroll.errors import UsageError
from backscroll.model.source_names import SOURCE_NAMES

__all__ = ["command"]

_PATIENCE = 1.0  # seconds that somebody who quits waits for a sync


@click.command("tui")
@click.argument("words", nargs=-1)
@click.option("--source", type=click.Choice(SOURCE_NAMES), help="Begin with sessions of this source.")
@click.option("--theme", type=click.Choice(["dark", "light"]), help="What the terminal says, unless given.")
@click.option("--no-sync", is_flag=True, help="Show what the archive holds, unrefreshed.")
@click.pass_obj
def command(
    setup: Setup, words: tuple[str, ...], source: str | None, theme: str | None, no_sync: bool
) -> None:
    """Look through everything in the terminal.

    With WORDS it begins with a search for them. ? shows every key.

    Example:

        backscroll tui clocks
    """
    try:
        import textual  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "The terminal UI is an extra of its own; install it with: pip install 'backscroll[tui]'"
        ) from error
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("The terminal UI needs a terminal; backscroll list and backscroll search print")
    if os.environ.get("TERM") == "dumb":
        raise UsageError(
            "This terminal says that it can only print (TERM=dumb); backscroll list and backscroll search do"
        )
    from backscroll.tui.app import Backscroll
    from backscroll.tui.session_list.model import Narrowing

    setup.history().close()  # what is wrong with the settings is said before the screen is taken
    screen = Backscroll(
        setup.history,
        welcome=welcome_lines,
        narrowing=Narrowing(source=source),
        words=" ".join(words),
        theme=theme,
        syncs=not no_sync,
    )
    screen.run()
    if not screen.has_ended(_PATIENCE):
        click.echo(
            "A sync was left unfinished: what it had read is whole, and the next one goes on.", err=True
        )
        # Its thread would be waited for. Whenever it is killed, it leaves an archive that is whole.
        os._exit(screen.return_code or 0)
    sys.exit(screen.return_code or 0)
