"""``backscroll demo``: write a sample history."""

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from backscroll.cli.messages import command_hint
from backscroll.cli.options import json_option
from backscroll.history.demo import Demo, write_demo


@click.command("demo")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Write a sample history to try Backscroll on.

    DIR becomes a home folder with four months of sessions from Claude Code, Cursor and the Cursor CLI, and
    the git repositories they worked on. DIR must be empty or not exist.

    \b
    Examples:
      backscroll demo /tmp/demo
    """
    written = write_demo(folder)
    if as_json:
        document = {**msgspec.to_builtins(written), "command": _list_command(written)}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document)) + b"\n")
        return
    click.echo("\n".join(_report_lines(written)))


def _report_lines(written: Demo) -> Iterator[str]:
    sessions = ", ".join(f"{count} {source}" for source, count in written.sessions.items())
    start, end = written.began_at, written.ended_at
    yield f"Wrote {written.folder}"
    yield f"  {start.day} {start:%B} to {end.day} {end:%B %Y}"
    yield f"  {sum(written.sessions.values())} sessions ({sessions}), {written.subagents} subagents"
    if written.has_git:
        yield f"  {written.repositories} repositories with {written.commits} commits"
    else:
        yield f"  {written.repositories} projects without commits (git is not installed)"
    yield ""
    yield "To use it, set these variables:"
    roots = os.pathsep.join(f"{source}={path}" for source, path in written.roots.items())
    yield _set_variable("BACKSCROLL_HOME", str(_archive_folder(written)))
    yield _set_variable("BACKSCROLL_ROOTS", roots)
    yield ""
    yield "Then try:"
    for arguments in ("list", "search remind me clocks", "show 1", "stats"):
        yield f"  {command_hint(arguments)}"


def _set_variable(name: str, value: str) -> str:
    return f'  $env:{name} = "{value}"' if os.name == "nt" else f"  export {name}={shlex.quote(value)}"


def _list_command(written: Demo) -> str:
    """Return a command that lists the sample history, with an archive of its own."""
    roots = [part for source, path in written.roots.items() for part in ("--root", f"{source}={path}")]
    return shlex.join(["backscroll", "--home", str(_archive_folder(written)), *roots, "list"])


def _archive_folder(written: Demo) -> Path:
    return Path(written.folder) / "archive"
