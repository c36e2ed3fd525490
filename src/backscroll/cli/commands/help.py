"""``backscroll help``: show the help of a command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

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
def command(ctx: click.Context, names: tuple[str, ...]) -> None:
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
