"""``backscroll completion``: what makes a shell complete commands, options, sessions and workspaces."""

import click
from click.shell_completion import get_completion_class

from backscroll.cli.app import app

__all__ = ["command"]

_PLACES = {
    "bash": "Put it where bash looks:\n"
    "  backscroll completion bash > ~/.local/share/bash-completion/completions/backscroll",
    "zsh": "Put it into a folder of your fpath, and start the shell anew:\n"
    "  backscroll completion zsh > ~/.zfunc/_backscroll\n"
    "with these lines in ~/.zshrc: fpath+=~/.zfunc; autoload -Uz compinit; compinit",
    "fish": "Put it where fish looks:\n"
    "  backscroll completion fish > ~/.config/fish/completions/backscroll.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_PLACES)))
def command(shell: str) -> None:
    """Print what makes a shell complete commands, options, sessions and workspaces.

    It goes to standard output; where to put it is said beside it.

    Example:

        source <(backscroll completion bash)
    """
    made = get_completion_class(shell)
    assert made is not None  # click knows all three
    click.echo(made(app, {}, "backscroll", "_BACKSCROLL_COMPLETE").source())
    click.echo(_PLACES[shell], err=True)
