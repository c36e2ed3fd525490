"""``backscroll mcp``: let assistants use the history."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from backscroll.cli.setup import Setup
from backscroll.config import archive_home, named_roots, this_machine
from backscroll.mcp.install import CLIENTS, Change, entry_of, installation, removal

__all__ = ["command"]

_SDK = ("mcp", "mcp_types", "anyio", "starlette", "uvicorn")


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
        if error.name is None or error.name.partition(".")[0] not in _SDK:
            raise
        raise click.ClickException(
            "The server is an extra of its own; install it with: pip install 'backscroll[mcp]'"
        ) from error
    serve(setup.history, is_redacted=not no_redact)


def _serve_http(setup: Setup, port: int, *, is_redacted: bool) -> None:
    from backscroll.http_guard import token_in
    from backscroll.mcp.http import serve

    path = setup.history().archive_path.with_name("mcp-token")

    def started(address: str) -> None:
        click.echo(address)
        click.echo(f"The token is in {path}; it is sent as Authorization: Bearer. Ctrl-C stops.", err=True)

    serve(setup.history, port=port, token=token_in(path), is_redacted=is_redacted, started=started)


_client = click.argument("client", type=click.Choice(list(CLIENTS)))
_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@command.command("install")
@_client
@_yes
@click.option("--print", "only_print", is_flag=True, help="Print what to add, and change nothing.")
@click.pass_obj
def install(setup: Setup, client: str, yes: bool, only_print: bool) -> None:
    """Have a client start the server: adds it to the client's settings.

    Shows the change and asks; keeps the file as it was beside it. Other entries and comments stay as they
    are. The archive and roots that were named by --home and --root or in the environment are passed on.

    Example:

        backscroll mcp install cursor
    """
    line = _command_line(setup)
    if only_print:
        click.echo(json.dumps({"mcpServers": {"backscroll": entry_of(CLIENTS[client], line)}}, indent=2))
        return
    change = installation(CLIENTS[client], this_machine(), line)
    if not change.is_needed:
        click.echo(f"{change.path} has it already; nothing was changed.")
        return
    _make(change, yes, f"Add it to {CLIENTS[client].title}?")
    click.echo(f"Start {CLIENTS[client].title} anew, and it has the history.")


@command.command("uninstall")
@_client
@_yes
def uninstall(client: str, yes: bool) -> None:
    """Take the server out of a client's settings again.

    Example:

        backscroll mcp uninstall cursor
    """
    change = removal(CLIENTS[client], this_machine())
    if not change.is_needed:
        click.echo(f"{change.path} does not have it; nothing was changed.")
        return
    _make(change, yes, f"Take it out of {CLIENTS[client].title}?")


def _make(change: Change, yes: bool, question: str) -> None:
    for line in change.diff():
        click.echo(line)
    if not yes and not _is_agreed(question):
        raise click.ClickException("Nothing was changed.")
    kept = change.make()
    click.echo(f"Wrote {change.path}." + (f" As it was before: {kept}" if kept is not None else ""))


def _is_agreed(question: str) -> bool:
    try:
        return click.confirm(question)
    except click.Abort:  # nobody is there to ask
        click.echo()
        return False


def _command_line(setup: Setup) -> Sequence[str]:
    """What starts this very program with this very archive, wherever and with whatever environment."""
    machine = this_machine()
    program = Path(sys.argv[0]).absolute()
    found = [path for path in (program, program.with_name(f"{program.name}.exe")) if path.is_file()]
    start = [str(found[0])] if found else [sys.executable, "-c", "from backscroll.cli import main; main()"]
    is_named = setup.home is not None or bool(machine.environ.get("BACKSCROLL_HOME"))
    home = ["--home", str(archive_home(setup.home, machine).absolute())] if is_named else []
    named = named_roots(setup.roots, machine)
    roots = [word for root in named for word in ("--root", f"{root.source}={root.path}")]
    return [*start, *home, *roots, "mcp"]
