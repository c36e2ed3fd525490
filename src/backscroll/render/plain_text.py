"""A complete session as plain text."""

from collections.abc import Iterable, Iterator

from backscroll.model.message import Message
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, sanitize
from backscroll.render.session_header import (
    attachment_label,
    format_time,
    header_fields,
    message_heading,
    session_title,
)
from backscroll.render.tool_calls import argument_lines, call_outcome, describe_call, diff_lines
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem


def plain_text(summary: SessionSummary, items: Iterable[TranscriptItem]) -> Iterator[str]:
    """Yield the text in chunks. Messages of subagents are indented."""
    title = session_title(summary)
    yield f"{title}\n{'=' * min(len(title), 100)}\n"
    for name, value in header_fields(summary):
        yield f"{name + ':':<15}{value}\n"
    depth = 0
    for item in items:
        match item:
            case SubagentStart():
                lines = [f">> subagent: {session_title(item.summary)}"]
                depth += 1
            case SubagentEnd():
                lines = [f"<< end of subagent: {session_title(item.summary)}"]
            case MessageItem():
                lines = list(_message_lines(item.message, is_agent=depth > 0))
        indent = "    " * depth
        yield "\n" + "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)
        depth -= isinstance(item, SubagentEnd)


def _message_lines(message: Message, *, is_agent: bool) -> Iterator[str]:
    tool = message.tool
    if tool is None:
        yield f"── {message_heading(message, is_agent=is_agent)}"
    else:
        time = format_time(message.timestamp, is_inferred=message.has_inferred_time)
        parts = (one_line(tool.name, 100), describe_call(tool), call_outcome(tool), time)
        yield f"── {' · '.join(part for part in parts if part)}"
    yield from sanitize(message.content).split("\n") if message.content else ()
    if tool is not None:
        diff = [line for edit in tool.edits for line in diff_lines(edit)]
        yield from (f"  {line}" for line in diff or argument_lines(tool))
        if tool.result:
            yield from (f"  | {line}" for line in sanitize(tool.result).removesuffix("\n").split("\n"))
    yield from (f"[{attachment_label(attachment)}]" for attachment in message.attachments)
