"""``backscroll serve``: the web app."""

import sys

import click

from backscroll.cli.install_command import missing_extra_message
from backscroll.cli.startup import Setup
from backscroll.errors import BackscrollError, DestinationError

_MODULES = ("jinja2", "markupsafe", "starlette", "uvicorn")


@click.command("serve")
@click.option("--port", type=click.IntRange(1, 65535), help="Port. Default: 7433, or a free one.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on. The printed address contains a token, which is needed to change anything. If"
    " other machines can connect, it is needed for reading, too.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address; do not open a browser.")
@click.option("--no-sync", is_flag=True, help="Show the archive as it is; do not keep it up to date.")
@click.pass_obj
def command(setup: Setup, port: int | None, host: str, no_browser: bool, no_sync: bool) -> None:
    """Open the web app in a browser.

    Shows the whole history and keeps the archive up to date until Ctrl-C. Only this machine can reach it,
    unless --host names another address. Without a display, prints the address. If a server is already
    running for the same archive, opens that one.

    \b
    Examples:
      backscroll serve
      backscroll serve --port 8080 --no-browser
    """
    try:
        from backscroll.web import server  # needs starlette, an optional dependency
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in _MODULES:
            raise
        raise BackscrollError(missing_extra_message("The web app", "web")) from error

    def show(address: str, launch_url: str) -> None:
        """Open the browser, or print the address that gives it the token."""
        if no_browser or not server.open_browser(launch_url):
            click.echo(launch_url)
        else:
            click.echo(address)

    def started(address: str, launch_url: str) -> None:
        show(address, launch_url)
        if host not in ("127.0.0.1", "localhost", "::1"):
            click.echo(
                "On other machines, use the name or address of this one. The connection is not encrypted.",
                err=True,
            )
        click.echo("Press Ctrl-C to stop.", err=True)
        sys.stdout.flush()

    running = server.serve(setup.history, host=host, port=port, auto_sync=not no_sync, started=started)
    if running is None:
        return
    if port is not None and not running.address.endswith(f":{port}"):
        raise DestinationError(
            f"The web app is already running for this archive, at {running.address}."
            f" Stop it first (process {running.pid}).",
            "",
        )
    click.echo("Already running.", err=True)
    show(running.address, server.launch_url(running.address, running.token))
