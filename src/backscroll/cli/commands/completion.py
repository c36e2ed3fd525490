"""``backscroll completion``: print a shell completion script."""

import click
from click.shell_completion import get_completion_class

from backscroll.cli.app import app


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a shell completion script.

    Completes commands, options, sessions, workspaces, branches, models and tags. To install it, write the
    script to a file that the shell loads, and start a new shell. For zsh, ~/.zshrc must contain
    'fpath+=~/.zfunc; autoload -Uz compinit; compinit'.

    \b
    Examples:
      backscroll completion bash > ~/.local/share/bash-completion/completions/backscroll
      backscroll completion zsh > ~/.zfunc/_backscroll
      backscroll completion fish > ~/.config/fish/completions/backscroll.fish
    """
    completion = get_completion_class(shell)
    assert completion is not None  # click supports all three
    click.echo(completion(app, {}, "backscroll", "_BACKSCROLL_COMPLETE").source())
