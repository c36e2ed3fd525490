"""``backscroll sync``, ``watch`` and ``tail``: read the tools' history, once or as it changes."""

import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from backscroll.cli.options import complete_refs, json_option, sync_before_reading
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.cli.sync import run_sync
from backscroll.documents import message_document, to_document
from backscroll.model.dates import iso
from backscroll.model.message import ToolCall
from backscroll.model.session import FollowedMessage, SessionChange
from backscroll.model.text import one_line, sanitize
from backscroll.render.json import encode_json_line

MAX_TITLE_CHARS = 70
MAX_TOOL_CHARS = 160  # of a tool call's parameters or result


@click.command("sync")
@json_option
@click.option("--full", is_flag=True, help="Read everything again, also what seems unchanged.")
@click.option("--stop", is_flag=True, help="Stop the sync that runs in the background.")
@click.pass_obj
def sync(setup: Setup, as_json: bool, full: bool, stop: bool) -> None:
    """Read new and changed history into the archive.

    Sessions that a tool deletes or overwrites stay in the archive. Prints how many were deleted or
    overwritten in the last 7 days. If a sync is already running in the background, waits for it and shows its
    progress. Exit code 3: some records could not be read.

    Only what changed is read. --full also finds changes that leave no trace in sizes, times and row ids, such
    as a row of an old Cursor session that was updated in place. It takes longer than the first sync.

    \b
    Examples:
      backscroll sync
      backscroll sync --full
      backscroll sync --stop
    """
    if stop:
        with setup.history() as history:
            is_stopped = history.background_sync.stop()
        click.echo(
            "Stopped. What was read is saved; the next sync continues."
            if is_stopped
            else "No sync is running in the background."
        )
        return
    sys.exit(run_sync(setup, as_json=as_json, full=full))


@click.command("watch")
@click.option("--json", "as_json", is_flag=True, help="Print each change as a JSON object on one line.")
@click.pass_obj
def watch(setup: Setup, as_json: bool) -> None:
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
    title = one_line(change.session.title or change.session.ref, MAX_TITLE_CHARS)
    return f"{time}  {title}  {_description(change)}"


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


@click.command("tail")
@click.argument("ref", required=False, shell_complete=complete_refs)
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of earlier messages to print first.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each message as a JSON object on one line.")
@click.pass_obj
def tail(setup: Setup, ref: str | None, lines: int, as_json: bool) -> None:
    """Follow a running session.

    Without REF, follows the session with the latest activity. If REF is a complete id that does not exist
    yet, waits for it. Prints one line when a tool is called and another when it returns. Press Ctrl-C to
    stop. REF: see 'backscroll show --help'.

    \b
    Examples:
      backscroll tail
      backscroll tail 1 --lines 50
    """
    try:
        with setup.history() as history:
            sync_before_reading(history)
            if history.live.is_awaited(ref):
                click.echo(f"Waiting for {ref or 'a session'} to start. Press Ctrl-C to stop.", err=True)
            for followed in history.live.follow(ref, last=lines, everything=as_json):
                if as_json:
                    document = message_document(followed.message, followed.position)
                    sys.stdout.buffer.write(encode_json_line(document))
                else:
                    for line in _lines(followed):
                        click.echo(line)
                sys.stdout.flush()
    except KeyboardInterrupt:
        return


def _lines(followed: FollowedMessage) -> Iterator[str]:
    message, before = followed.message, followed.before
    time = (
        message.timestamp.astimezone().strftime("%H:%M:%S") if message.timestamp is not None else "--:--:--"
    )
    if message.tool is not None:
        yield f"{time} {_tool_line(message.tool, is_result=before is not None)}"
        return
    if before is not None and message.content.startswith(before.content):
        yield from sanitize(message.content[len(before.content) :]).splitlines()
        return
    yield f"{time} ── {message.role}{f' ({message.kind})' if message.kind else ''}"
    yield from sanitize(message.content).splitlines()
    for attachment in message.attachments:
        yield sanitize(f"[{attachment.kind}{f' {attachment.name}' if attachment.name else ''}]")


def _tool_line(tool: ToolCall, *, is_result: bool) -> str:
    """Return a tool call on one line: with its parameters, or with its result once the call was printed."""
    params = ", ".join(
        f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in tool.params.items()
    )
    text = one_line((tool.result or "") if is_result else params, MAX_TOOL_CHARS)
    return f"── {sanitize(tool.name)} · {tool.status}{' → ' if is_result else '  '}{text}".rstrip()
