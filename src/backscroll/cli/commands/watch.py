"""``backscroll watch``: keep the archive up to date, and say what happens."""

import sys
from typing import Any

import click

from backscroll.cli.progress import ProgressBar
from backscroll.cli.setup import Setup
from backscroll.model.live import SessionChange
from backscroll.model.sanitize import sanitize
from backscroll.render.json import encode_json_line, summary_document

__all__ = ["command"]

_TITLE = 70


@click.command("watch")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
def command(setup: Setup, as_json: bool) -> None:
    """Keep the archive up to date while the tools write.

    What is said can be searched for a moment later. Every change is a line: when, which session, what.
    Ctrl-C ends it.

    Example:

        backscroll watch
    """
    try:
        with setup.history() as history:
            with ProgressBar("Reading what changed") as bar:
                history.sync(bar.step, wait=False)
            click.echo("Watching. Ctrl-C ends it.", err=True)
            for change in history.watch():
                if as_json:
                    sys.stdout.buffer.write(encode_json_line(_document(change)))
                else:
                    click.echo(_line(change))
                sys.stdout.flush()
    except KeyboardInterrupt:
        return  # the way it is meant to end


def _line(change: SessionChange) -> str:
    time = change.at.astimezone().strftime("%H:%M:%S")
    title = " ".join(sanitize(change.session.title or change.session.ref).split())
    cut = title if len(title) <= _TITLE else f"{title[: _TITLE - 1].rstrip()}…"
    return f"{time}  {cut}  {_what(change)}"


def _what(change: SessionChange) -> str:
    messages = f"{change.added:+,} message{'' if abs(change.added) == 1 else 's'}" if change.added else ""
    if change.is_new:
        return f"new session, {messages}" if messages else "new session"
    if change.has_vanished:
        return "vanished from the tool's own store, and kept"
    return messages or "changed"


def _document(change: SessionChange) -> dict[str, Any]:
    session = summary_document(change.session)
    return {
        "at": change.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "session_ref": change.session.ref,
        "session_id": change.session.id,
        "what": _what(change),
        "messages_added": change.added,
        "is_new": change.is_new,
        "has_vanished": change.has_vanished,
        "session": session,
    }
