"""``backscroll mcp``: run the MCP server, or add it to a client's settings."""

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from backscroll.cli.app import CommandGroup
from backscroll.cli.install_command import missing_extra_message
from backscroll.cli.options import LazyChoice
from backscroll.cli.output import apply_settings_change
from backscroll.cli.startup import Setup
from backscroll.config import archive_home, named_roots, this_machine
from backscroll.errors import BackscrollError
from backscroll.mcp.install import plan_install, plan_uninstall, server_entry

if TYPE_CHECKING:
    from backscroll.mcp.call import ServerOptions
    from backscroll.model.mcp_client import McpClient

_SDK_MODULES = ("mcp", "mcp_types", "anyio", "starlette", "uvicorn")
_allow_writes = click.option(
    "--allow-writes",
    is_flag=True,
    help="Also offer tools that create and restore backups, move sessions and write journal entries.",
)


@click.group("mcp", cls=CommandGroup, invoke_without_command=True)
@click.option(
    "--http",
    "over_http",
    is_flag=True,
    help="Serve over HTTP on 127.0.0.1 instead of standard input and output.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port for --http. Default: any free port.")
@click.option(
    "--no-redact", is_flag=True, help="Do not replace keys, tokens and passwords with placeholders."
)
@click.option(
    "--structured",
    is_flag=True,
    help="Add a JSON document to each result, for programs. Some assistants then read only the document.",
)
@_allow_writes
@click.pass_context
def command(
    ctx: click.Context,
    over_http: bool,
    port: int | None,
    no_redact: bool,
    structured: bool,
    allow_writes: bool,
) -> None:
    """Run the MCP server, or add it to the settings of an assistant.

    The server gives assistants read-only access to your history and keeps the archive up to date while it
    runs. Without a subcommand, it serves over standard input and output; clients start it this way. With
    --http, it serves until Ctrl-C. Requests need the token in the file that it names at start.

    With --allow-writes, assistants can also create and restore backups, move sessions and write the journal.
    Tools for backups and moves return a plan, and act only when they are called again with the id of the
    plan.

    \b
    Examples:
      backscroll mcp install cursor
      claude mcp add backscroll -- backscroll mcp
    """
    if ctx.invoked_subcommand is not None:
        return
    from backscroll.mcp.call import ServerOptions  # start-up time: loads the history

    setup: Setup = ctx.obj
    options = ServerOptions(
        is_redacted=not no_redact,
        is_structured=structured,
        allow_writes=allow_writes,
        command=tuple(_command_line(setup)),
    )
    if port is not None and not over_http:
        raise click.UsageError("--port requires --http.")
    try:
        if over_http:
            _serve_http(setup, port or 0, options)
            return
        from backscroll.mcp.server import serve_stdio  # needs the MCP SDK, an optional dependency
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in _SDK_MODULES:
            raise
        raise _missing_sdk_error() from error
    serve_stdio(setup.history, options)


def _missing_sdk_error() -> BackscrollError:
    return BackscrollError(missing_extra_message("The MCP server", "mcp"))


def _serve_http(setup: Setup, port: int, options: "ServerOptions") -> None:
    from backscroll.mcp.http import serve  # needs starlette, an optional dependency

    path = setup.history().archive_path.with_name("mcp-token")

    def started(address: str) -> None:
        click.echo(address)
        click.echo(f"Send the token in {path} as 'Authorization: Bearer TOKEN'.", err=True)
        click.echo("Press Ctrl-C to stop.", err=True)

    serve(
        setup.history,
        options,
        port=port,
        token_file=path,
        started=started,
    )


def _clients() -> "dict[str, McpClient]":
    from backscroll.history.history import History  # start-up time

    return History.mcp_clients(this_machine())


_client = click.argument("client", type=LazyChoice(_clients))
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


@command.command("install")
@_client
@_yes
@click.option(
    "--print", "only_print", is_flag=True, help="Print the entry to add; do not change the settings."
)
@_allow_writes
@click.pass_obj
def install(setup: Setup, client: str, yes: bool, only_print: bool, allow_writes: bool) -> None:
    """Add the server to a client's settings.

    Shows the entry, asks for confirmation and adds it. An existing settings file is copied next to it first.
    Other entries and comments are kept. The entry includes --home and --root if you pass them or set them in
    the environment.

    \b
    Examples:
      backscroll mcp install cursor
      backscroll mcp install claude-code --allow-writes
    """
    line = [*_command_line(setup), "mcp", *(["--allow-writes"] if allow_writes else [])]
    if find_spec("mcp") is None:
        raise _missing_sdk_error()
    found = _clients()[client]
    if only_print:
        click.echo(json.dumps({"mcpServers": {"backscroll": server_entry(found, line)}}, indent=2))
        return
    change = plan_install(found, line)
    if not change.is_needed:
        click.echo(f"{change.path} already contains the server.")
        return
    apply_settings_change(change, f"Add the server to {found.title}?", yes=yes)
    click.echo(f"Restart {found.title} to use the server.")


@command.command("uninstall")
@_client
@_yes
def uninstall(client: str, yes: bool) -> None:
    """Remove the server from a client's settings.

    \b
    Examples:
      backscroll mcp uninstall cursor
    """
    found = _clients()[client]
    change = plan_uninstall(found)
    if not change.is_needed:
        click.echo(f"{change.path} does not contain the server.")
        return
    apply_settings_change(change, f"Remove the server from {found.title}?", yes=yes)


def _command_line(setup: Setup) -> Sequence[str]:
    """Return a command that starts this program with this archive, independent of folder and environment."""
    machine = this_machine()
    program = Path(sys.argv[0]).absolute()
    found = [path for path in (program, program.with_name(f"{program.name}.exe")) if path.is_file()]
    start = [str(found[0])] if found else [sys.executable, "-c", "from backscroll.cli import main; main()"]
    is_named = setup.home is not None or bool(machine.environ.get("BACKSCROLL_HOME"))
    home = ["--home", str(archive_home(setup.home, machine).absolute())] if is_named else []
    named = named_roots(setup.roots, machine)
    roots = [word for root in named for word in ("--root", f"{root.source}={root.path}")]
    return [*start, *home, *roots]
