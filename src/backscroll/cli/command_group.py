"""Command groups that suggest similar names, and name the command in usage errors."""

from collections.abc import Iterable

import click

__all__ = ["CommandGroup"]

MAX_SUGGESTIONS = 3


class CommandGroup(click.Group):
    """Group that suggests similar commands, also with versions of click that do not."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if ctx.resilient_parsing or name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such command {name!r}.{_question(self.similar_commands(ctx, name))}", ctx)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if error.ctx is None and (command := self.get_command(ctx, ctx.invoked_subcommand or "")):
                # An error of the option parser does not name its command.
                error.ctx = click.Context(command, parent=ctx, info_name=ctx.invoked_subcommand)
            raise

    def similar_commands(self, ctx: click.Context, name: str) -> list[str]:
        """Return the commands that start with a name, or else the one with the most similar name."""
        from difflib import get_close_matches  # start-up time: needed after a typing error only

        commands = self.list_commands(ctx)
        longer = [command for command in commands if command.startswith(name)]
        return longer[:MAX_SUGGESTIONS] or get_close_matches(name, commands, 1)


def _question(names: Iterable[str]) -> str:
    quoted = [repr(name) for name in names]
    if not quoted:
        return ""
    *others, last = quoted
    return f" Did you mean {', '.join(others)} or {last}?" if others else f" Did you mean {last}?"
