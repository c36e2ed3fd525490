"""``backscroll mcp``: let assistants use the history."""

import click

from backscroll.cli.app import Setup

__all__ = ["command"]


@click.group("mcp", invoke_without_command=True)
@click.option("--http", "over_http", is_flag=True, help="Serve over HTTP, on this machine only.")
@click.option("--port", type=click.IntRange(1, 65535), help="With --http: this port, not any that is free.")
@click.option("--no-redact", is_flag=True, help="Do not replace keys, tokens and passwords.")
@click.pass_context
def command(ctx: click.Context, over_http: bool, port: int | None, no_redact: bool) -> None:
    """Let assistants use the history, through the Model Context Protocol.

    Without a subcommand it serves over standard input and output until they are closed: that is how clients
    start it. With --http it serves on 127.0.0.1 until Ctrl-C, to programs that send the token. The archive is
    kept up to date meanwhile, and nothing in it can be changed.

    Example:

        claude mcp add backscroll -- backscroll mcp
    """
    if ctx.invoked_subcommand is not None:
        return
    setup: Setup = ctx.obj
    if port is not None and not over_http:
        raise click.UsageError("--port goes with --http")
    try:
        if over_http:
            _serve_http(setup, port or 0, is_redacted=not no_redact)
            return
        from backscroll.mcp.stdio import serve
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise click.ClickException(
            "The server is an extra of its own; install it with: pip install 'backscroll[mcp]'"
        ) from error
    serve(setup.history, is_redacted=not no_redact)


def _serve_http(setup: Setup, port: int, *, is_redacted: bool) -> None:
    from backscroll.mcp.guard import token_in
    from backscroll.mcp.http import serve

    path = setup.history().archive_path.with_name("mcp-token")

    def started(address: str) -> None:
        click.echo(address)
        click.echo(f"The token is in {path}; it is sent as Authorization: Bearer. Ctrl-C stops.", err=True)

    serve(setup.history, port=port, token=token_in(path), is_redacted=is_redacted, started=started)
