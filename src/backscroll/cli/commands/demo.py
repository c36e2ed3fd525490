"""``backscroll demo``: a made-up history to try things on."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from backscroll.history import History
from backscroll.testing.demo import Demo

__all__ = ["command"]


@click.command("demo")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, as_json: bool) -> None:
    """Write a made-up history of four months into DIR, to try things on.

    DIR becomes a home folder as the tools would have left it: sessions of Claude Code, of Cursor and of its
    command line, and the git repositories they worked on. It must not exist yet, or be empty.

    Example:

        backscroll demo /tmp/demo
    """
    written = History().write_demo(folder)
    if as_json:
        document = {**msgspec.to_builtins(written), "command": _look(written)}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document)) + b"\n")
        return
    click.echo("\n".join(_report(written)))


def _report(written: Demo) -> Iterator[str]:
    sessions = ", ".join(f"{number} {source}" for source, number in written.sessions.items())
    yield f"Wrote {written.folder}"
    began, ended = written.began_at, written.ended_at
    yield f"  {began.day} {began:%B} to {ended.day} {ended:%B %Y}"
    yield f"  {sum(written.sessions.values())} sessions ({sessions}), {written.subagents} subagents"
    if written.has_git:
        yield f"  {written.repositories} repositories with {written.commits} commits"
    else:
        yield f"  {written.repositories} projects without their commits, because git was not found"
    yield ""
    yield "To look at it, in an archive of its own:"
    yield f"  {_look(written)}"
    yield "and in place of list for example: search remind me clocks, show 1, doctor"


def _look(written: Demo) -> str:
    """The command that reads what was written, and nothing else, into an archive that holds nothing else."""
    named = [part for source, path in written.roots.items() for part in ("--root", f"{source}={path}")]
    home = Path(written.folder) / "archive"
    return shlex.join(["backscroll", "--home", str(home), *named, "list"])
