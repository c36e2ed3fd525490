"""A session as plain text, whole."""

from collections.abc import Iterable, Iterator

from backscroll.model import Message, SessionSummary
from backscroll.model.sanitize import inert, one_line
from backscroll.render.diffs import diff_lines
from backscroll.render.session_header import attachment_name, facts, heading, moment, title_of
from backscroll.render.tool_calls import argument_lines, describe, outcome
from backscroll.render.turns import Begun, Ended, Event, Said

__all__ = ["plain_text"]


def plain_text(summary: SessionSummary, events: Iterable[Event]) -> Iterator[str]:
    """The text, piece by piece; what a subagent said is indented."""
    title = title_of(summary)
    yield f"{title}\n{'=' * min(len(title), 100)}\n"
    for name, value in facts(summary):
        yield f"{name + ':':<15}{value}\n"
    depth = 0
    for event in events:
        match event:
            case Begun():
                lines = [f">> subagent: {title_of(event.summary)}"]
                depth += 1
            case Ended():
                lines = [f"<< end of subagent: {title_of(event.summary)}"]
            case Said():
                lines = list(_lines(event.message, is_agent=depth > 0))
        indent = "    " * depth
        yield "\n" + "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)
        depth -= isinstance(event, Ended)


def _lines(message: Message, *, is_agent: bool) -> Iterator[str]:
    tool = message.tool
    if tool is None:
        yield f"── {heading(message, is_agent=is_agent)}"
    else:
        time = moment(message.timestamp)
        parts = (one_line(tool.name, 100), describe(tool), outcome(tool), time)
        yield f"── {' · '.join(part for part in parts if part)}"
    yield from inert(message.content).split("\n") if message.content else ()
    if tool is not None:
        changed = [line for edit in tool.edits for line in diff_lines(edit)]
        yield from (f"  {line}" for line in changed or argument_lines(tool))
        if tool.result:
            yield from (f"  | {line}" for line in inert(tool.result).removesuffix("\n").split("\n"))
    yield from (f"[{attachment_name(one)}]" for one in message.attachments)
