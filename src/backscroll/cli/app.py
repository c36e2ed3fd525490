"""All commands: global options, help, and commands that are imported only when they run."""

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import click

from backscroll import __version__
from backscroll.cli.messages import as_sentence, discard_output, program
from backscroll.cli.startup import Setup

# Section of the help: command name: module in backscroll.cli.commands and attribute, first line of its help.
_SECTIONS = {
    "Find and read": {
        "list": ("list:command", "List sessions, newest first."),
        "search": ("search:search", "Search all sessions."),
        "recall": ("search:recall", "Find earlier sessions relevant to a task."),
        "show": ("show:command", "Show a session."),
        "tail": ("sync:tail", "Follow a running session."),
        "stats": ("stats:command", "Show statistics: sessions, time, tokens, cost and more."),
        "tui": ("tui:command", "Browse sessions in a full-screen terminal UI."),
        "serve": ("serve:command", "Open the web app in a browser."),
    },
    "Continue and share": {
        "resume": ("resume:resume", "Resume a session in the tool it came from."),
        "open": ("resume:open_", "Open a session's workspace, or a file that a message changed or read."),
        "handoff": ("resume:handoff", "Print a summary of a session to paste into another assistant."),
        "export": ("export:export", "Export sessions to files, or one session to standard output."),
        "secrets": ("export:secrets", "Find keys, tokens and passwords in sessions."),
    },
    "Explain code": {
        "commits": ("commits:commits", "List commits with the sessions that led to them."),
        "commit": ("commits:commit", "Show the sessions behind a commit, or link one by hand."),
        "blame": ("commits:blame", "Show the session and prompt behind each line of a file."),
        "survival": ("commits:survival", "Show how many lines of sessions still exist."),
        "journal": ("journal:command", "Write a journal of commits and their conversations."),
    },
    "Annotate": {
        "rename": ("annotate:rename", "Change the title of a session."),
        "note": ("annotate:note", "Add a note to a session, or show its notes."),
        "tag": ("annotate:tag", "Add tags to a session."),
        "untag": ("annotate:untag", "Remove tags from a session."),
        "tags": ("annotate:tags", "List all tags and how many sessions have each."),
        "star": ("annotate:star", "Star a session."),
        "unstar": ("annotate:unstar", "Remove the star from a session."),
    },
    "Back up and move": {
        "restore-session": ("restore_session:command", "Restore sessions that their tools have deleted."),
        "migrate": ("migrate:migrate", "Copy or move sessions to another folder."),
        "migrate-workspace": (
            "migrate:migrate_workspace",
            "Copy or move all sessions of a folder to another one.",
        ),
        "changes": ("changes:changes", "List all changes to the tools' files and databases, newest first."),
        "undo": ("changes:undo", "Undo a change to a tool's files and databases."),
        "backup": ("backup:command", "Create, check, list and restore backups."),
    },
    "Maintain": {
        "sync": ("sync:sync", "Read new and changed history into the archive."),
        "watch": ("sync:watch", "Keep the archive up to date and print changes."),
        "archive": ("archive:command", "Manage the archive, the local database that keeps all sessions."),
        "doctor": ("doctor:command", "Check that the whole history can be read."),
    },
    "Set up": {
        "mcp": ("mcp:command", "Run the MCP server, or add it to the settings of an assistant."),
        "hooks": ("hooks:command", "Install hooks in the tools or in git."),
        "completion": ("help:completion", "Print a shell completion script."),
        "demo": ("demo:command", "Write a sample history to try Backscroll on."),
        "help": ("help:help_", "Show the help of a command."),
    },
}
_MODULES = {name: place for section in _SECTIONS.values() for name, (place, _) in section.items()}
_BACKUP_COMMANDS = ("list", "search", "show", "export")  # commands that can read a backup
_GROUPS = ("archive", "backup", "hooks", "journal", "mcp")  # commands with subcommands
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


class _LazyGroup(CommandGroup):
    """Group that imports a command only when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module, _, attribute = _MODULES[cmd_name].partition(":")
        command = getattr(import_module(f"backscroll.cli.commands.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def similar_commands(self, ctx: click.Context, name: str) -> list[str]:
        """Return the commands with a similar name, and subcommands with this name."""
        groups = (self.get_command(ctx, group) for group in _GROUPS)
        members = [
            f"{group.name} {name}" for group in groups if group and name in getattr(group, "commands", ())
        ]
        return members or super().similar_commands(ctx, name)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            discard_output()
            ctx.exit(0)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _MODULES))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), help_line) for name, (_, help_line) in commands.items()]
                )


def _to_folder(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> Path | None:
    """Return the value of an option. An empty one, such as an unset variable, is not the current folder."""
    if value == "":
        raise click.UsageError("--home is empty. Name a folder.")
    return Path(value) if value is not None else None


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="backscroll", message="%(prog)s %(version)s")
@click.option(
    "--home",
    type=click.Path(readable=False),
    callback=_to_folder,
    metavar="DIR",
    help="Folder of the archive. Default: see 'backscroll archive path'. [env: BACKSCROLL_HOME]",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="SOURCE=DIR",
    help="Read SOURCE from DIR instead of its usual folders. Sources without --root are not read. Repeatable."
    " [env: BACKSCROLL_ROOTS]",
)
@click.option(
    "--backup",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read the sessions in a backup instead of the archive. For list, search, show and export.",
)
@click.pass_context
def app(ctx: click.Context, home: Path | None, roots: tuple[str, ...], backup: Path | None) -> None:
    """Archive, search and resume your sessions with AI coding assistants.

    \b
    Examples:
      backscroll list
      backscroll search flaky test
      backscroll show 1
    """
    if backup is not None and ctx.invoked_subcommand not in _BACKUP_COMMANDS:
        raise click.UsageError(f"--backup can be used with {', '.join(_BACKUP_COMMANDS)} only.")
    ctx.obj = Setup(home, roots, backup)


def run() -> None:
    """Run the command group. Print a usage error on standard error and exit with its code."""
    try:
        app(prog_name="backscroll", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        click.echo(as_sentence(error.format_message()), err=True)
        has_help = isinstance(error, click.exceptions.NoArgsIsHelpError)  # the message is the help
        if isinstance(error, click.UsageError) and not has_help:
            _, *names = error.ctx.command_path.split(" ", 1) if error.ctx is not None else [""]
            click.echo(f"Run '{' '.join([program(), *names, '--help'])}' for usage.", err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        raise KeyboardInterrupt from None
