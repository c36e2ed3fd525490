"""A session as Markdown that reads well where code is hosted.

Prompts are quotations, answers are taken over, thinking and tool output are
folded, edits are diffs, and a subagent stands folded where it was started.
"""

from collections.abc import Iterable, Iterator
from html import escape

from backscroll.model import Message, SessionSummary, ToolCall
from backscroll.model.sanitize import one_line, sanitize
from backscroll.render.diffs import diff_lines
from backscroll.render.markdown_escape import (
    blockquote,
    code_fence,
    code_span,
    escape_markdown,
    safe_markdown,
)
from backscroll.render.session_header import (
    attachment_label,
    format_time,
    header_fields,
    message_heading,
    session_title,
)
from backscroll.render.tool_calls import argument_lines, call_outcome, describe_call
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

__all__ = ["markdown"]

_SHORT_DIFF = 40  # lines that are shown unfolded
_COMMANDS = ("command", "cmd")
_CODE_FACTS = ("Session", "Subagent of", "Workspace", "Branch", "Model")


def markdown(summary: SessionSummary, events: Iterable[TranscriptItem]) -> Iterator[str]:
    """The page, piece by piece."""
    yield f"# {escape_markdown(session_title(summary))}\n\n"
    for name, value in header_fields(summary):
        yield f"- **{name}** {code_span(value) if name in _CODE_FACTS else escape_markdown(value)}\n"
    depth = 0
    previous = ""
    for event in events:
        match event:
            case SubagentStart():
                depth += 1
                previous = ""
                yield from _begin(event)
            case SubagentEnd():
                depth -= 1
                previous = ""
                yield "\n</details>\n"
            case MessageItem():
                head = message_heading(event.message, is_agent=depth > 0)
                yield from _said(event.message, "" if head == previous else head, is_agent=depth > 0)
                previous = head if event.message.role == "assistant" else ""


def _begin(event: SubagentStart) -> Iterator[str]:
    summary = event.summary
    tokens = f", {summary.total_tokens:,} tokens" if summary.total_tokens is not None else ""
    unplaced = "" if event.is_placed else ", started at an unknown place"
    name = escape(session_title(summary))
    yield f"\n<details>\n<summary><b>Subagent</b> {name}"
    yield f" · {summary.message_count:,} messages{tokens}{unplaced}</summary>\n"


def _said(message: Message, head: str, *, is_agent: bool) -> Iterator[str]:
    if message.tool is not None:
        yield from _tool(message, message.tool)
        return
    yield "\n"
    match message.role:
        case "user" if not is_agent:
            yield f"## {escape_markdown(head)}\n\n"
            yield blockquote(message.content)
        case "thinking" | "system":
            yield f"<details>\n<summary>{escape(head)}</summary>\n\n"
            yield code_fence(message.content, "text")
            yield "\n</details>\n"
        case "error" | "user":
            yield f"**{escape_markdown(head)}**\n\n"
            yield blockquote(message.content)
        case _:
            yield f"**{escape_markdown(head)}**\n\n" if head else ""
            yield safe_markdown(message.content)
    if message.attachments:
        yield "\n" + "".join(f"- {escape_markdown(attachment_label(one))}\n" for one in message.attachments)


def _tool(message: Message, tool: ToolCall) -> Iterator[str]:
    changed = [line for edit in tool.edits for line in diff_lines(edit)]
    about = escape(describe_call(tool))
    time = format_time(message.timestamp)
    notes = " · ".join(
        part for part in ("" if message.is_active else "abandoned", call_outcome(tool), time) if part
    )
    is_open = " open" if 0 < len(changed) <= _SHORT_DIFF else ""
    yield f"\n<details{is_open}>\n<summary><b>{escape(one_line(tool.name, 100))}</b>"
    yield f"{f' <code>{about}</code>' if about else ''}{f' · {escape(notes)}' if notes else ''}</summary>\n\n"
    if message.content.strip():
        yield safe_markdown(message.content) + "\n"
    if changed:
        yield code_fence("\n".join(changed), "diff")
    else:
        yield from _asked(tool)
    result = sanitize(tool.result or "")
    if result.strip() and changed:
        yield f"\n<details>\n<summary>Result</summary>\n\n{code_fence(result, 'text')}\n</details>\n"
    elif result.strip():
        yield "\n" + code_fence(result, "text")
    if message.attachments:
        yield "\n" + "".join(f"- {escape_markdown(attachment_label(one))}\n" for one in message.attachments)
    yield "\n</details>\n"


def _asked(tool: ToolCall) -> Iterator[str]:
    """The arguments: a command as one, everything else by name."""
    command = next((key for key in _COMMANDS if isinstance(tool.params.get(key), str)), None)
    if command is not None:
        yield code_fence(tool.params[command], "sh")
    rest = {key: value for key, value in tool.params.items() if key != command}
    lines = list(argument_lines(ToolCall(id=None, name=tool.name, params=rest)))
    if lines and (command is None or any(isinstance(value, str) for value in rest.values())):
        yield ("\n" if command else "") + code_fence("\n".join(lines), "text")
