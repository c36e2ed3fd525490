"""The command's frame: global options, commands loaded when asked for."""

import sys
from importlib import import_module
from pathlib import Path

import click

from backscroll import __version__
from backscroll.cli.context import Setup
from backscroll.cli.exit import ignore_output

__all__ = ["Setup", "app", "run"]

# name: (module, one line for --help)
_COMMANDS = {
    "archive": ("backscroll.cli.commands.archive", "Look after the file that everything is kept in."),
    "completion": ("backscroll.cli.commands.completion", "Print what makes a shell complete what you type."),
    "demo": ("backscroll.cli.commands.demo", "Write a made-up history to try things on."),
    "export": (
        "backscroll.cli.commands.export",
        "Write sessions as Markdown, HTML, JSON, JSON lines or text.",
    ),
    "handoff": ("backscroll.cli.commands.handoff", "Print a session in short, to paste into any assistant."),
    "open": ("backscroll.cli.commands.open", "Open a session's workspace, or the file at a message."),
    "resume": ("backscroll.cli.commands.resume", "Continue a session in the tool that held it."),
    "note": ("backscroll.cli.commands.note", "Write something down about a session."),
    "mcp": ("backscroll.cli.commands.mcp", "Let assistants use the history, through MCP."),
    "recall": ("backscroll.cli.commands.recall", "Find what earlier sessions have to say about a task."),
    "rename": ("backscroll.cli.commands.rename", "Show a session under a title of your own."),
    "star": ("backscroll.cli.commands.star", "Mark a session as one to come back to."),
    "tag": ("backscroll.cli.commands.tag", "Give a session tags."),
    "untag": ("backscroll.cli.commands.untag", "Take tags away from a session."),
    "list": ("backscroll.cli.commands.list", "List sessions, newest first."),
    "search": ("backscroll.cli.commands.search", "Find the sessions where something was said."),
    "secrets": (
        "backscroll.cli.commands.secrets",
        "List the keys and passwords in sessions, without showing them.",
    ),
    "show": ("backscroll.cli.commands.show", "Show a session."),
    "stats": ("backscroll.cli.commands.stats", "Add up sessions, prompts, time, tokens, cost and more."),
    "tail": ("backscroll.cli.commands.tail", "Follow a session while it is being held."),
    "tui": ("backscroll.cli.commands.tui", "Look through everything in the terminal."),
    "watch": ("backscroll.cli.commands.watch", "Keep the archive up to date while the tools write."),
    "sync": ("backscroll.cli.commands.sync", "Read what changed into the archive."),
    "doctor": (
        "backscroll.cli.commands.doctor",
        "Say what history there is, and whether all of it was understood.",
    ),
}


class _Lazy(click.Group):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(_COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            ignore_output()
            ctx.exit(0)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in sorted(_COMMANDS.items())])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="backscroll", message="%(prog)s %(version)s")
@click.option(
    "--home",
    type=click.Path(path_type=Path, readable=False),
    help="The archive's folder; also BACKSCROLL_HOME.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="SOURCE=DIR",
    help="Read this folder as SOURCE's home, and only what is named so. May be given several times.",
)
@click.pass_context
def app(ctx: click.Context, home: Path | None, roots: tuple[str, ...]) -> None:
    """The whole history of your work with AI coding assistants: read, kept and found."""
    ctx.obj = Setup(home, roots)


def run() -> None:
    """Run the command; what goes wrong with the words themselves is said on standard error."""
    try:
        app(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        click.echo(error.format_message(), err=True)
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"{error.ctx.command_path} --help says what can be written.", err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        raise KeyboardInterrupt from None
