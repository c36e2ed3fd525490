"""Parse lines that are not messages of the user or the model: notices, attachments, progress, queue."""

from typing import TYPE_CHECKING, Any

from backscroll.model import Message, Origin, Problem, ToolCall, ToolResult
from backscroll.readers import timestamps
from backscroll.sources.claude_code.transcript import notices
from backscroll.sources.claude_code.transcript.content_blocks import odd_result_text
from backscroll.sources.claude_code.transcript.line_context import LineContext
from backscroll.sources.claude_code.transcript.line_types import Attached, params, text
from backscroll.sources.claude_code.transcript.queue import Waiting, links_in, prompt_text
from backscroll.sources.claude_code.transcript.subagents import link_in_progress

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["attachment", "bare_tool", "emit_waiting", "progress", "queued", "system"]


def system(context: LineContext) -> None:
    """Emit a notice of the tool to the user."""
    context.add_to_tree(0)
    if not context.line.raw:
        return  # too large to decode; already a problem
    transcript = context.transcript
    notice = notices.parse_notice(context.value, context.full_record)
    if notice.subtype is not None:
        transcript.tally.add_unknown(f"system subtype {notice.subtype}")
        if not notice.messages:
            transcript.add_problem(
                Problem(context.origin, "unknown-type", f"unknown system subtype {notice.subtype}")
            )
    if notice.retracted:
        transcript.tree.retracted_ids.update(notice.retracted)
    if notice.kind == "compact_boundary":
        transcript.state.facts.compactions += 1
    for kind, role, words in notice.messages:
        if kind == "command":
            transcript.mark_delivered(words)
        context.add_message(role, words, kind=kind)


def attachment(context: LineContext) -> None:
    """Emit a prompt that was delivered as an attachment. Other attachments are context for the model."""
    context.add_to_tree(0)
    if not context.raw:
        return
    transcript = context.transcript
    shown = context.value.attachment
    kind = text(shown.type) if isinstance(shown, Attached) else None
    if not notices.is_known(kind):
        transcript.tally.add_unknown(f"attachment {kind}")
        transcript.add_problem(Problem(context.origin, "unknown-type", f"unknown attachment {kind}"))
        return
    if kind != "queued_command":
        return
    found = context.full_record().get("attachment")
    if not isinstance(found, dict) or not notices.is_typed(found):
        return
    words, came_along = notices.prompt(found.get("prompt"))
    if words.strip() or came_along:
        transcript.mark_delivered(words)
        context.add_message("user", words, kind="queued", attachments=came_along)


def progress(context: LineContext) -> None:
    """Emit the link to a running subagent."""
    context.add_to_tree(0)
    if (link := link_in_progress(context.value)) is not None:
        context.transcript.link(link)


def queued(record: dict[str, Any], origin: Origin, id_: str, transcript: "Transcript") -> bool:
    """Apply a queue operation. Return True if it contains a prompt."""
    content = record.get("content")
    for link in links_in(content):
        transcript.link(link)
    operation = record.get("operation")
    words = prompt_text(content)
    if operation == "enqueue" and words.strip():
        at = timestamps.from_value(record.get("timestamp"))
        _, came_along = notices.prompt(content)
        transcript.state.queue.enqueue(Waiting(f"queued-{id_}", words, at, origin, came_along))
        return True
    if operation == "remove" and (words.strip() or content is None):
        waiting = transcript.state.queue.removed(words or None)
        if waiting is not None:
            emit_waiting(waiting, transcript)
    return False


def emit_waiting(waiting: Waiting, transcript: "Transcript") -> None:
    """Emit a prompt that has no other line yet."""
    transcript.tree.set_message_count(transcript.tree.add(waiting.id, None, 0, None), 1)
    transcript.emit(
        Message(
            id=waiting.id,
            role="user",
            content=waiting.words,
            origin=waiting.origin,
            kind="queued",
            timestamp=waiting.at,
            timestamp_source="stored" if waiting.at else None,
            agent_id=transcript.agent_id,
            is_sidechain=transcript.agent_id is not None,
            attachments=waiting.attachments,
        )
    )


def bare_tool(record: dict[str, Any], origin: Origin, id_: str, transcript: "Transcript") -> None:
    """Emit a tool line outside of a message, as some third-party writers produce.

    A result without an id belongs to the oldest call of the same tool.
    """
    name = text(record.get("name")) or "unknown"
    waiting = transcript.state.bare
    if record.get("type") == "tool_use":
        call = text(record.get("id")) or f"line-{id_}"
        waiting.setdefault(name, []).append(call)
        tool = ToolCall(call, name, params(record.get("input")))
        transcript.emit(Message(id=f"line-{id_}", role="tool", content="", origin=origin, tool=tool))
        return
    named = text(record.get("tool_use_id"))
    calls = waiting.get(name, [])
    if named is not None:
        if named in calls:
            calls.remove(named)
    else:
        named = calls.pop(0) if calls else f"line-{id_}"
    if not calls:
        waiting.pop(name, None)
    result = odd_result_text(record.get("output", record.get("content")))
    transcript.emit(ToolResult(tool_call_id=named, result=result, origin=origin))
