"""``backscroll help`` and ``completion``: the help of a command, a shell completion script."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from backscroll.cli.app import app

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    try:
        context = _find_command(ctx.find_root(), ctx.params.get("names") or ())
    except click.UsageError:
        return []
    group = context.command
    names = group.list_commands(context) if isinstance(group, click.Group) else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("help")
@click.argument("names", nargs=-1, metavar="[COMMAND]...", shell_complete=_complete)
@click.pass_context
def help_(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of a command.

    \b
    Examples:
      backscroll help search
      backscroll help archive extract
    """
    click.echo(_find_command(ctx.find_root(), names).get_help())


def _find_command(context: click.Context, names: Iterable[str]) -> click.Context:
    """Return the context of a command: that of the whole program, followed by subcommands."""
    for name in names:
        group = context.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"'{context.command_path}' has no subcommands.", context)
        _, member, _ = group.resolve_command(context, [name])
        assert member is not None  # resolve_command raises a usage error for an unknown name
        context = click.Context(member, info_name=name, parent=context)
    return context


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
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
