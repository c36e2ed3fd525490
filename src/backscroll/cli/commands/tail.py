"""``backscroll tail``: follow a running session."""

import sys
from collections.abc import Iterator

import click
import msgspec

from backscroll.cli.options import complete_refs, sync_before_reading
from backscroll.cli.startup import Setup
from backscroll.documents import message_document
from backscroll.model.message import ToolCall
from backscroll.model.session import FollowedMessage
from backscroll.model.text import sanitize
from backscroll.render.json import encode_json_line

MAX_TOOL_CHARS = 160  # of a tool call's parameters or result


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
def command(setup: Setup, ref: str | None, lines: int, as_json: bool) -> None:
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
    text = (tool.result or "") if is_result else params
    line = " ".join(sanitize(text[: MAX_TOOL_CHARS * 4]).split())
    cut = line if len(line) <= MAX_TOOL_CHARS else f"{line[: MAX_TOOL_CHARS - 1].rstrip()}…"
    return f"── {sanitize(tool.name)} · {tool.status}{' → ' if is_result else '  '}{cut}".rstrip()
