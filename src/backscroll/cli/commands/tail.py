"""``backscroll tail``: a session while it is being held."""

import sys
from collections.abc import Iterator

import click
import msgspec

from backscroll.cli.completion_values import complete_refs
from backscroll.cli.options import sync_before_reading
from backscroll.cli.setup import Setup
from backscroll.model import ToolCall
from backscroll.model.live import FollowedMessage
from backscroll.model.sanitize import sanitize
from backscroll.render.json import encode_json_line, message_document

__all__ = ["command"]

_WIDTH = 160


@click.command("tail")
@click.argument("ref", required=False, shell_complete=complete_refs)
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many of the last messages to begin with.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, for every message.")
@click.pass_obj
def command(setup: Setup, ref: str | None, lines: int, as_json: bool) -> None:
    """Follow a session while it is being held.

    Without REF it is the one with the newest activity. A whole id may be of a session that has not begun yet:
    it is waited for. A tool call is a line, and another when its answer comes. Ctrl-C ends it.

    Example:

        backscroll tail
    """
    try:
        with setup.history() as history:
            sync_before_reading(history)
            if history.is_awaited(ref):
                click.echo(f"Waiting for {ref or 'a session'} to begin. Ctrl-C ends it.", err=True)
            for said in history.follow(ref, last=lines, everything=as_json):
                if as_json:
                    document = message_document(said.message, said.position)
                    sys.stdout.buffer.write(encode_json_line(document))
                else:
                    for line in _told(said):
                        click.echo(line)
                sys.stdout.flush()
    except KeyboardInterrupt:
        return  # the way it is meant to end


def _told(said: FollowedMessage) -> Iterator[str]:
    message, before = said.message, said.before
    time = (
        message.timestamp.astimezone().strftime("%H:%M:%S") if message.timestamp is not None else "--:--:--"
    )
    if message.tool is not None:
        yield f"{time} {_call(message.tool, is_answer=before is not None)}"
        return
    if before is not None and message.content.startswith(before.content):
        yield from sanitize(message.content[len(before.content) :]).splitlines()
        return
    yield f"{time} ── {message.role}{f' ({message.kind})' if message.kind else ''}"
    yield from sanitize(message.content).splitlines()
    for attachment in message.attachments:
        yield sanitize(f"[{attachment.kind}{f' {attachment.name}' if attachment.name else ''}]")


def _call(tool: ToolCall, *, is_answer: bool) -> str:
    """A call on one line: what was asked for, or what came of it once the question has been shown."""
    asked = ", ".join(
        f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in tool.params.items()
    )
    told = (tool.result or "") if is_answer else asked
    line = " ".join(sanitize(told[: _WIDTH * 4]).split())
    cut = line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1].rstrip()}…"
    return f"── {sanitize(tool.name)} · {tool.status}{' → ' if is_answer else '  '}{cut}".rstrip()
