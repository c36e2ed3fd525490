"""``backscroll hooks``: install, show and remove hooks of the tools."""

import click

from backscroll.cli.command_group import CommandGroup
from backscroll.cli.commands.safekeeping.confirmation import confirm
from backscroll.cli.global_options import Setup
from backscroll.cli.output.json_documents import write_json
from backscroll.config.settings_file import SettingsChange
from backscroll.model.hooks import HookStatus

__all__ = ["command"]

_TARGETS = ("claude-code", "cursor")

_target = click.argument("target", type=click.Choice(_TARGETS))
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
_dry_run = click.option("--dry-run", is_flag=True, help="Show the change; change nothing.")


@click.group("hooks", cls=CommandGroup)
def command() -> None:
    """Install hooks in Claude Code, Cursor or git.

    A hook records an event in a local file, and the next sync adds it to the archive. Hooks are optional:
    they add token counts of Cursor, and sessions that a tool does not store. Nothing is sent anywhere.

    \b
    Examples:
      backscroll hooks install claude-code
      backscroll hooks status
    """


@command.command("install")
@_target
@_yes
@_dry_run
@click.pass_obj
def install(setup: Setup, target: str, yes: bool, dry_run: bool) -> None:
    """Add the hooks to the settings of a tool.

    Shows the entries, asks for confirmation and writes a backup next to the settings file. Other entries and
    comments are kept. Only events are used that every version of the tool knows.

    \b
    Examples:
      backscroll hooks install claude-code
      backscroll hooks install cursor --dry-run
    """
    with setup.history() as history:
        change = history.hooks.plan_install(target)
        title = history.hooks.title(target)
        if not change.is_needed:
            click.echo(f"{change.path} already contains the hooks.")
            return
        # The hook creates only the spool: without an archive, it records nothing.
        if _apply(change, f"Add the hooks to {title}?", yes=yes, dry_run=dry_run):
            history.archive_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            click.echo(f"Restart {title} to use the hooks.")


@command.command("uninstall")
@_target
@_yes
@_dry_run
@click.pass_obj
def uninstall(setup: Setup, target: str, yes: bool, dry_run: bool) -> None:
    """Remove the hooks from the settings of a tool.

    If the file has not changed since the installation, it is restored to the byte. What the hooks have
    recorded stays in the archive.

    \b
    Example:
      backscroll hooks uninstall claude-code
    """
    with setup.history() as history:
        change = history.hooks.plan_uninstall(target)
        if not change.is_needed:
            click.echo(f"{change.path} does not contain the hooks.")
            return
        _apply(change, f"Remove the hooks from {history.hooks.title(target)}?", yes=yes, dry_run=dry_run)


@command.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def status(setup: Setup, as_json: bool) -> None:
    """Show which hooks are installed, and whether they work.

    \b
    Example:
      backscroll hooks status
    """
    with setup.history() as history:
        found = history.hooks.status()
    if as_json:
        write_json({"data": [_document(one) for one in found]})
        return
    for one in found:
        click.echo("\n".join(_lines(one)))


def _apply(change: SettingsChange, question: str, *, yes: bool, dry_run: bool) -> bool:
    """Show a change, ask and apply it. Return False for a dry run."""
    click.echo(f"{change.path}:")
    for line in change.lines:
        click.echo(line)
    if dry_run:
        click.echo("Nothing was changed (dry run).")
        return False
    confirm(question, yes=yes)
    backup = change.apply()
    click.echo(f"Wrote {change.path}" if change.after is not None else f"Deleted {change.path}")
    if backup is not None:
        click.echo(f"  backup: {backup}")
    return True


def _document(status: HookStatus) -> dict[str, object]:
    return {
        "target": status.target,
        "path": status.path,
        "is_installed": status.is_installed,
        "events": list(status.events),
        "missing_events": list(status.missing_events),
        "command": status.command,
        "problems": list(status.problems),
    }


def _lines(status: HookStatus) -> list[str]:
    state = "installed" if status.is_installed else "not installed"
    lines = [f"{status.target}: {state}", f"  {status.path}"]
    if status.is_installed:
        lines.append(f"  events: {', '.join(status.events)}")
    if status.is_installed and status.missing_events:
        lines.append(f"  missing: {', '.join(status.missing_events)}")
    lines += [f"  problem: {problem}" for problem in status.problems]
    if status.is_installed and (status.problems or status.missing_events):
        lines.append(f"  Run 'backscroll hooks install {status.target}' to repair it.")
    return lines
