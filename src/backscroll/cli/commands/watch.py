"""``backscroll watch``: keep the archive up to date and print changes."""

import sys
from typing import Any

import click

from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.documents import to_document
from backscroll.model.dates import iso
from backscroll.model.session import SessionChange
from backscroll.model.text import sanitize
from backscroll.render.json import encode_json_line

MAX_TITLE_CHARS = 70


@click.command("watch")
@click.option("--json", "as_json", is_flag=True, help="Print each change as a JSON object on one line.")
@click.pass_obj
def command(setup: Setup, as_json: bool) -> None:
    """Keep the archive up to date and print changes.

    Syncs whenever a tool writes to its history. Prints a line for each change: time, session and what
    changed. Press Ctrl-C to stop.

    \b
    Examples:
      backscroll watch
    """
    try:
        with setup.history() as history:
            with ProgressBar("Syncing") as bar:
                history.sync(bar.step, wait=False)
            changes = history.live.watch()
            click.echo("Watching for changes. Press Ctrl-C to stop.", err=True)
            for change in changes:
                if as_json:
                    sys.stdout.buffer.write(encode_json_line(_document(change)))
                else:
                    click.echo(_line(change))
                sys.stdout.flush()
    except KeyboardInterrupt:
        return


def _line(change: SessionChange) -> str:
    time = change.at.astimezone().strftime("%H:%M:%S")
    title = " ".join(sanitize(change.session.title or change.session.ref).split())
    cut = title if len(title) <= MAX_TITLE_CHARS else f"{title[: MAX_TITLE_CHARS - 1].rstrip()}…"
    return f"{time}  {cut}  {_description(change)}"


def _description(change: SessionChange) -> str:
    messages = f"{change.added:+,} message{'' if abs(change.added) == 1 else 's'}" if change.added else ""
    if change.is_new:
        return f"new session, {messages}" if messages else "new session"
    if change.has_vanished:
        return "deleted by the tool, kept in the archive"
    return messages or "changed"


def _document(change: SessionChange) -> dict[str, Any]:
    return {
        "at": iso(change.at),
        "session_ref": change.session.ref,
        "session_id": change.session.id,
        "what": _description(change),
        "messages_added": change.added,
        "is_new": change.is_new,
        "has_vanished": change.has_vanished,
        "session": to_document(change.session),
    }
