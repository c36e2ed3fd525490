"""``backscroll hooks``: install, show and remove hooks of the tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import to_builtins

from backscroll.cli.app import CommandGroup
from backscroll.cli.options import LazyChoice, json_option
from backscroll.cli.output import apply_settings_change, confirm, write_json
from backscroll.cli.startup import Setup
from backscroll.model.text import pluralize

if TYPE_CHECKING:
    from backscroll.history.history import History
    from backscroll.history.hooks import GitHookChange
    from backscroll.model.hook import HookStatus, SpoolStatus


F = TypeVar("F", bound=Callable[..., Any])


def _targets() -> tuple[str, ...]:
    from backscroll.history.hooks import Hooks  # start-up time

    return (*Hooks.tools(), "git")


_target = click.argument("target", type=LazyChoice(_targets))
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
_dry_run = click.option("--dry-run", is_flag=True, help="Show the change; change nothing.")
_repo = click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Repository of the git hook. Default: the current folder.",
)


def _global_option(help: str) -> Callable[[F], F]:
    """Return the option for the git hook of all repositories."""
    return click.option("--global", "is_global", is_flag=True, help=help)


@click.group("hooks", cls=CommandGroup)
def command() -> None:
    """Install hooks in the tools or in git.

    A hook records an event in a local file, and the next sync adds it to the archive. Hooks are optional:
    they add what a tool does not store, such as token counts or whole sessions. Nothing is sent anywhere.

    \b
    Examples:
      backscroll hooks install claude-code
      backscroll hooks install git --repo ~/projects/tideline
      backscroll hooks status
    """


@command.command("install")
@_target
@_repo
@_global_option("Install the git hook for all repositories. Needs git 2.54 or newer.")
@_yes
@_dry_run
@click.pass_obj
def install(setup: Setup, target: str, repo: Path, is_global: bool, yes: bool, dry_run: bool) -> None:
    """Add the hooks to the settings of a tool, or to a repository.

    Shows the change and asks for confirmation. Other settings, comments and hooks are kept. The old settings
    file is copied next to it first.

    The git hook links each commit to its sessions and writes its journal entry, in the background. Existing
    hooks run as before.

    \b
    Examples:
      backscroll hooks install claude-code
      backscroll hooks install cursor --dry-run
      backscroll hooks install git
    """
    with setup.history() as history:
        if target == "git":
            change = history.hooks.plan_git_install(repo, is_global=is_global)
            if not change.is_needed:
                click.echo(f"{change.place}: the hook is already installed.")
            else:
                _apply_git(history, change, "Install the git hook?", yes=yes, dry_run=dry_run)
            return
        settings = history.hooks.plan_install(target)
        title = history.hooks.title(target)
        if not settings.is_needed:
            click.echo(f"{settings.path} already contains the hooks.")
            return
        # The hook creates only the spool: without an archive, it records nothing.
        if apply_settings_change(settings, f"Add the hooks to {title}?", yes=yes, dry_run=dry_run):
            history.archive_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            click.echo(f"Restart {title} to use the hooks.")


@command.command("uninstall")
@_target
@_repo
@_global_option("Remove the git hook that was installed for all repositories.")
@_yes
@_dry_run
@click.pass_obj
def uninstall(setup: Setup, target: str, repo: Path, is_global: bool, yes: bool, dry_run: bool) -> None:
    """Remove the hooks from a tool or a repository.

    If the file has not changed since the installation, it is restored byte for byte. Recorded events stay in
    the archive.

    \b
    Examples:
      backscroll hooks uninstall claude-code
      backscroll hooks uninstall git
    """
    with setup.history() as history:
        if target == "git":
            change = history.hooks.plan_git_uninstall(repo, is_global=is_global)
            if not change.is_needed:
                click.echo(f"{change.place}: there is no hook of Backscroll.")
            else:
                _apply_git(history, change, "Remove the git hook?", yes=yes, dry_run=dry_run)
            return
        settings = history.hooks.plan_uninstall(target)
        if not settings.is_needed:
            click.echo(f"{settings.path} does not contain the hooks.")
            return
        apply_settings_change(
            settings, f"Remove the hooks from {history.hooks.title(target)}?", yes=yes, dry_run=dry_run
        )


@command.command("status")
@_repo
@json_option
@click.pass_obj
def status(setup: Setup, repo: Path, as_json: bool) -> None:
    """Show which hooks are installed, and whether they work.

    \b
    Example:
      backscroll hooks status
    """
    with setup.history() as history:
        found = [*history.hooks.status(), *history.hooks.git_status(repo)]
        spool = history.hooks.spool_status()
    if as_json:
        write_json({"data": [_document(one) for one in found], "spool": to_builtins(spool)})
        return
    for one in found:
        click.echo("\n".join(_lines(one)))
    click.echo(_spool_line(spool))


def _apply_git(history: History, change: GitHookChange, question: str, *, yes: bool, dry_run: bool) -> None:
    click.echo(f"{change.place}:")
    for line in (*change.lines, *change.notes):
        click.echo(line)
    if dry_run:
        click.echo("Nothing was changed (dry run).")
        return
    confirm(question, yes=yes)
    history.hooks.apply_git_change(change)
    click.echo("Removed." if change.is_removal else "Installed.")


def _spool_line(spool: SpoolStatus) -> str:
    counts = pluralize(spool.event_count, "event"), pluralize(spool.commit_count, "commit")
    parts = [f"{counts[0]} and {counts[1]} in the archive"]
    if spool.last_event_at is not None:
        parts.append(f"last {spool.last_event_at:%Y-%m-%d %H:%M} UTC")
    if spool.pending_bytes:
        parts.append(f"{spool.pending_bytes:,} bytes wait for the next sync")
    if spool.unreadable_count:
        parts.append(f"{pluralize(spool.unreadable_count, 'record')} could not be parsed")
    return f"Recorded: {', '.join(parts)}."


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
