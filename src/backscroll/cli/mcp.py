"""``backscroll mcp``: let assistants use the history."""

import click

from backscroll.cli.app import Setup

__all__ = ["command"]


@click.group("mcp", invoke_without_command=True)
@click.option("--no-redact", is_flag=True, help="Do not replace keys, tokens and passwords.")
@click.pass_context
def command(ctx: click.Context, no_redact: bool) -> None:
    """Let assistants use the history, through the Model Context Protocol.

    Without a subcommand it serves over standard input and output until they are closed: that is how clients
    start it. The archive is kept up to date meanwhile, and nothing in it can be changed.

    Example:

        claude mcp add backscroll -- backscroll mcp
    """
    if ctx.invoked_subcommand is not None:
        return
    setup: Setup = ctx.obj
    try:
        from backscroll.mcp.stdio import serve
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise click.ClickException(
            "The server is an extra of its own; install it with: pip install 'backscroll[mcp]'"
        ) from error
    serve(setup.history, is_redacted=not no_redact)
