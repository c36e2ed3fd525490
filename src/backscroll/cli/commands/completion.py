"""``backscroll completion``: print a shell completion script."""

import click
from click.shell_completion import get_completion_class

from backscroll.cli.app import app

__all__ = ["command"]

_INSTALL = {
    "bash": "To install:\n"
    "  backscroll completion bash > ~/.local/share/bash-completion/completions/backscroll",
    "zsh": "To install:\n"
    "  backscroll completion zsh > ~/.zfunc/_backscroll\n"
    "Add this line to ~/.zshrc and restart the shell:\n"
    "  fpath+=~/.zfunc; autoload -Uz compinit; compinit",
    "fish": "To install:\n  backscroll completion fish > ~/.config/fish/completions/backscroll.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def command(shell: str) -> None:
    """Print a shell completion script.

    Completes commands, options, sessions, workspaces, branches, models and tags. The script goes to standard
    output; instructions to install it go to standard error.

    \b
    Examples:
      source <(backscroll completion bash)
    """
    completion = get_completion_class(shell)
    assert completion is not None  # click supports all three
    click.echo(completion(app, {}, "backscroll", "_BACKSCROLL_COMPLETE").source())
    click.echo(_INSTALL[shell], err=True)
