"""A session as Markdown for code hosting sites.

Prompts are block quotes, answers are Markdown, thinking and tool output are collapsed, edits are diffs.
A subagent is collapsed after the call that started it.
"""

from collections.abc import Iterable, Iterator
from html import escape

from backscroll.model import Message, SessionSummary, ToolCall
from backscroll.model.text import one_line, pluralize, sanitize
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
from backscroll.render.tool_calls import argument_lines, call_outcome, command_param, describe_call
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

__all__ = ["markdown"]

_MAX_OPEN_DIFF_LINES = 40  # longer diffs are collapsed
_CODE_FIELDS = ("Session", "Subagent of", "Workspace", "Branch", "Model")


def markdown(summary: SessionSummary, items: Iterable[TranscriptItem]) -> Iterator[str]:
    """Yield the page in chunks."""
    yield f"# {escape_markdown(session_title(summary))}\n\n"
    for name, value in header_fields(summary):
        yield f"- **{name}** {code_span(value) if name in _CODE_FIELDS else escape_markdown(value)}\n"
    depth = 0
    previous = ""
    for item in items:
        match item:
            case SubagentStart():
                depth += 1
                previous = ""
                yield from _start_subagent(item)
            case SubagentEnd():
                depth -= 1
                previous = ""
                yield "\n</details>\n"
            case MessageItem():
                heading = message_heading(item.message, is_agent=depth > 0)
                shown = "" if heading == previous else heading
                yield from _message(item.message, shown, is_agent=depth > 0)
                previous = heading if item.message.role == "assistant" else ""


def _start_subagent(item: SubagentStart) -> Iterator[str]:
    summary = item.summary
    tokens = f", {pluralize(summary.total_tokens, 'token')}" if summary.total_tokens is not None else ""
    unplaced = "" if item.is_placed else ", started by an unknown call"
    yield f"\n<details>\n<summary><b>Subagent</b> {escape(session_title(summary))}"
    yield f" · {pluralize(summary.message_count, 'message')}{tokens}{unplaced}</summary>\n"


def _message(message: Message, heading: str, *, is_agent: bool) -> Iterator[str]:
    if message.tool is not None:
        yield from _tool_call(message, message.tool)
        return
    yield "\n"
    match message.role:
        case "user" if not is_agent:
            yield f"## {escape_markdown(heading)}\n\n"
            yield blockquote(message.content)
        case "thinking" | "system":
            yield f"<details>\n<summary>{escape(heading)}</summary>\n\n"
            yield code_fence(message.content, "text")
            yield "\n</details>\n"
        case "error" | "user":
            yield f"**{escape_markdown(heading)}**\n\n"
            yield blockquote(message.content)
        case _:
            yield f"**{escape_markdown(heading)}**\n\n" if heading else ""
            yield safe_markdown(message.content)
    yield _attachments(message)


def _attachments(message: Message) -> str:
    if not message.attachments:
        return ""
    labels = (escape_markdown(attachment_label(attachment)) for attachment in message.attachments)
    return "\n" + "".join(f"- {label}\n" for label in labels)


def _tool_call(message: Message, tool: ToolCall) -> Iterator[str]:
    diff = [line for edit in tool.edits for line in diff_lines(edit)]
    subject = escape(describe_call(tool))
    time = format_time(message.timestamp)
    notes = " · ".join(
        part for part in ("" if message.is_active else "abandoned", call_outcome(tool), time) if part
    )
    is_open = " open" if 0 < len(diff) <= _MAX_OPEN_DIFF_LINES else ""
    yield f"\n<details{is_open}>\n<summary><b>{escape(one_line(tool.name, 100))}</b>"
    yield f"{f' <code>{subject}</code>' if subject else ''}{f' · {escape(notes)}' if notes else ''}"
    yield "</summary>\n\n"
    if message.content.strip():
        yield safe_markdown(message.content) + "\n"
    if diff:
        yield code_fence("\n".join(diff), "diff")
    else:
        yield from _arguments(tool)
    result = sanitize(tool.result or "")
    if result.strip() and diff:
        yield f"\n<details>\n<summary>Result</summary>\n\n{code_fence(result, 'text')}\n</details>\n"
    elif result.strip():
        yield "\n" + code_fence(result, "text")
    yield _attachments(message)
    yield "\n</details>\n"


def _arguments(tool: ToolCall) -> Iterator[str]:
    """Yield the arguments: a command as a code block, the others with their names."""
    command = command_param(tool)
    if command is not None:
        yield code_fence(tool.params[command], "sh")
    rest = {key: value for key, value in tool.params.items() if key != command}
    lines = list(argument_lines(ToolCall(id=None, name=tool.name, params=rest)))
    if lines and (command is None or any(isinstance(value, str) for value in rest.values())):
        yield ("\n" if command else "") + code_fence("\n".join(lines), "text")
