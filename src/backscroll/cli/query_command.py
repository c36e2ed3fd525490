"""Command line of the commands that take a query."""

import click

__all__ = ["QueryCommand"]


class QueryCommand(click.Command):
    """Command with a query as its arguments, where ``-word`` excludes a word.

    A short option counts only as a token of its own: ``-n 5`` is an option, ``-nginx`` an excluded word.
    Without other arguments, ``-h`` prints the help even if it is not a help option.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args == ["-h"] and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, self._words_last(ctx, args))

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None and "-h" not in option.opts:
            option.help = "Show this message and exit. Also -h, if it is the only argument."
        return option

    def _words_last(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the options with their values, then ``--``, then the words."""
        names = {name: param for param in self.get_params(ctx) for name in param.opts}
        options: list[str] = []
        words: list[str] = []
        rest = iter(args)
        for token in rest:
            param = names.get(token)
            if token == "--":
                words += rest
            elif isinstance(param, click.Option):
                options.append(token)
                if not param.is_flag:
                    value = next(rest, None)
                    if value is None:
                        return options  # click reports the missing value
                    options.append(value)
            elif token.startswith("--"):  # with "=", or unknown
                options.append(token)
            else:
                words.append(token)
        return [*options, "--", *words]
