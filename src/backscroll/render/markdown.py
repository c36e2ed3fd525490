"""A session as Markdown that reads well where code is hosted.

Prompts are quotations, answers are taken over, thinking and tool output are
folded, edits are diffs, and a subagent stands folded where it was started.
"""

from collections.abc import Iterable, Iterator
from html import escape

from backscroll.model import Message, SessionSummary, ToolCall
from backscroll.model.sanitize import inert, one_line
from backscroll.render.diffs import diff_lines
from backscroll.render.markdown_escape import code_span, fenced, plain, quoted, safe
from backscroll.render.session_header import attachment_name, facts, heading, moment, title_of
from backscroll.render.tool_calls import argument_lines, describe, outcome
from backscroll.render.turns import Begun, Ended, Event, Said

__all__ = ["markdown"]

_SHORT_DIFF = 40  # lines that are shown unfolded
_COMMANDS = ("command", "cmd")
_CODE_FACTS = ("Session", "Subagent of", "Workspace", "Branch", "Model")


def markdown(summary: SessionSummary, events: Iterable[Event]) -> Iterator[str]:
    """The page, piece by piece."""
    yield f"# {plain(title_of(summary))}\n\n"
    for name, value in facts(summary):
        yield f"- **{name}** {code_span(value) if name in _CODE_FACTS else plain(value)}\n"
    depth = 0
    previous = ""
    for event in events:
        match event:
            case Begun():
                depth += 1
                previous = ""
                yield from _begin(event)
            case Ended():
                depth -= 1
                previous = ""
                yield "\n</details>\n"
            case Said():
                head = heading(event.message, is_agent=depth > 0)
                yield from _said(event.message, "" if head == previous else head, is_agent=depth > 0)
                previous = head if event.message.role == "assistant" else ""


def _begin(event: Begun) -> Iterator[str]:
    summary = event.summary
    tokens = f", {summary.total_tokens:,} tokens" if summary.total_tokens is not None else ""
    unplaced = "" if event.is_placed else ", started at an unknown place"
    name = escape(title_of(summary))
    yield f"\n<details>\n<summary><b>Subagent</b> {name}"
    yield f" · {summary.message_count:,} messages{tokens}{unplaced}</summary>\n"


def _said(message: Message, head: str, *, is_agent: bool) -> Iterator[str]:
    if message.tool is not None:
        yield from _tool(message, message.tool)
        return
    yield "\n"
    match message.role:
        case "user" if not is_agent:
            yield f"## {plain(head)}\n\n"
            yield quoted(message.content)
        case "thinking" | "system":
            yield f"<details>\n<summary>{escape(head)}</summary>\n\n"
            yield fenced(message.content, "text")
            yield "\n</details>\n"
        case "error" | "user":
            yield f"**{plain(head)}**\n\n"
            yield quoted(message.content)
        case _:
            yield f"**{plain(head)}**\n\n" if head else ""
            yield safe(message.content)
    if message.attachments:
        yield "\n" + "".join(f"- {plain(attachment_name(one))}\n" for one in message.attachments)


def _tool(message: Message, tool: ToolCall) -> Iterator[str]:
    changed = [line for edit in tool.edits for line in diff_lines(edit)]
    about = escape(describe(tool))
    time = moment(message.timestamp)
    notes = " · ".join(
        part for part in ("" if message.is_active else "abandoned", outcome(tool), time) if part
    )
    is_open = " open" if 0 < len(changed) <= _SHORT_DIFF else ""
    yield f"\n<details{is_open}>\n<summary><b>{escape(one_line(tool.name, 100))}</b>"
    yield f"{f' <code>{about}</code>' if about else ''}{f' · {escape(notes)}' if notes else ''}</summary>\n\n"
    if message.content.strip():
        yield safe(message.content) + "\n"
    if changed:
        yield fenced("\n".join(changed), "diff")
    else:
        yield from _asked(tool)
    result = inert(tool.result or "")
    if result.strip() and changed:
        yield f"\n<details>\n<summary>Result</summary>\n\n{fenced(result, 'text')}\n</details>\n"
    elif result.strip():
        yield "\n" + fenced(result, "text")
    if message.attachments:
        yield "\n" + "".join(f"- {plain(attachment_name(one))}\n" for one in message.attachments)
    yield "\n</details>\n"


def _asked(tool: ToolCall) -> Iterator[str]:
    """The arguments: a command as one, everything else by name."""
    command = next((key for key in _COMMANDS if isinstance(tool.params.get(key), str)), None)
    if command is not None:
        yield fenced(tool.params[command], "sh")
    rest = {key: value for key, value in tool.params.items() if key != command}
    lines = list(argument_lines(ToolCall(id=None, name=tool.name, params=rest)))
    if lines and (command is None or any(isinstance(value, str) for value in rest.values())):
        yield ("\n" if command else "") + fenced("\n".join(lines), "text")
