"""Parse notices, attachments, progress lines, queue operations and tool lines outside of messages."""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from backscroll.model import Attachment, Message, Origin, Problem, Role, ToolCall, ToolResult
from backscroll.readers import timestamps
from backscroll.sources.claude_code.transcript import notices, user_lines
from backscroll.sources.claude_code.transcript.content_blocks import fallback_result_text
from backscroll.sources.claude_code.transcript.line_context import LineContext
from backscroll.sources.claude_code.transcript.line_structs import Attached, as_text, parse_params
from backscroll.sources.claude_code.transcript.queue import (
    QueuedPrompt,
    content_text,
    find_links,
    typed_prompt_text,
)
from backscroll.sources.claude_code.transcript.subagents.agents import parse_report, progress_link

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = [
    "emit_queued_prompt",
    "parse_attachment",
    "parse_bare_tool",
    "parse_progress",
    "parse_queue_operation",
    "parse_system",
]


def parse_system(context: LineContext) -> None:
    """Emit the messages of a system line."""
    context.add_to_tree(0)
    if not context.line.raw:
        return  # too large to decode; already a problem
    transcript = context.transcript
    notice = notices.parse_notice(context.value, context.full_record)
    if notice.unknown_subtype is not None:
        transcript.counts.add_unknown(f"system subtype {notice.unknown_subtype}")
        if not notice.messages:
            transcript.add_problem(
                Problem(context.origin, "unknown-type", f"unknown system subtype {notice.unknown_subtype}")
            )
    if notice.retracted_ids:
        transcript.tree.retracted_ids.update(notice.retracted_ids)
    if notice.kind == "compact_boundary":
        transcript.state.facts.compactions += 1
    for kind, role, text in notice.messages:
        if kind == "command":
            transcript.mark_delivered(text)
        context.add_message(role, text, kind=kind)


def parse_attachment(context: LineContext) -> None:
    """Emit a prompt that was delivered as an attachment. Other attachments are ignored."""
    context.add_to_tree(0)
    if not context.raw:
        return
    transcript = context.transcript
    typed = context.value.attachment
    kind = as_text(typed.type) if isinstance(typed, Attached) else None
    if not notices.is_known_attachment(kind):
        transcript.counts.add_unknown(f"attachment {kind}")
        transcript.add_problem(Problem(context.origin, "unknown-type", f"unknown attachment {kind}"))
        return
    if kind not in notices.MENTION_TYPES and kind != "queued_command":
        return
    attachment = context.full_record().get("attachment")
    if not isinstance(attachment, dict):
        return
    if kind != "queued_command":
        _attach_file(notices.parse_mention(attachment), context)
        return
    if not notices.is_typed(attachment):
        user_lines.add_report(content_text(attachment.get("prompt")), context)
        return
    text, attachments = notices.parse_prompt(attachment.get("prompt"))
    if text.strip() or attachments:
        transcript.mark_delivered(text)
        message = context.add_message("user", text, kind="queued", attachments=attachments)
        transcript.state.last_prompt = message


def _attach_file(mention: Attachment, context: LineContext) -> None:
    """Add a file that the user mentioned with ``@`` to the prompt above this line."""
    state = context.transcript.state
    prompt = state.last_prompt
    if prompt is not None and mention not in prompt.attachments:
        state.last_prompt = replace(prompt, attachments=(*prompt.attachments, mention))
        context.transcript.emit(state.last_prompt)


def parse_progress(context: LineContext) -> None:
    """Emit the link to a running subagent, and its message if it has no file."""
    context.add_to_tree(0)
    transcript = context.transcript
    last_at = transcript.state.facts.last_at
    if context.at is not None and last_at is not None and context.at < last_at and not context.is_known:
        transcript.tree.append(context.node)
    if (link := progress_link(context.value)) is not None:
        transcript.link(link)
    context.has_subagent_message = transcript.agent_id is None and transcript.progress_agents.add(
        context.value, context.line
    )


def parse_queue_operation(record: dict[str, Any], origin: Origin, id_: str, transcript: "Transcript") -> bool:
    """Apply a queue operation. Return True if it contains a prompt."""
    content = record.get("content")
    for link in find_links(content):
        transcript.link(link)
        if (
            report := parse_report(content_text(content))
        ) is not None:  # its message is written when it is delivered
            transcript.state.agents.add_report(report)
    operation = record.get("operation")
    text = typed_prompt_text(content)
    if operation == "enqueue" and text.strip():
        at = timestamps.from_value(record.get("timestamp"))
        _, attachments = notices.parse_prompt(content)
        transcript.state.queue.enqueue(QueuedPrompt(f"queued-{id_}", text, at, origin, attachments))
        return True
    queue = transcript.state.queue
    if operation == "enqueue":
        queue.enqueue_notification()
    elif operation == "dequeue":
        queue.dequeue()
    elif operation == "remove" and (text.strip() or content is None):
        prompt = queue.remove(text or None)
        if prompt is not None:
            emit_queued_prompt(prompt, transcript)
    elif operation == "remove":
        queue.remove_notification()
    elif operation == "popAll":
        at = timestamps.from_value(record.get("timestamp"))
        for message_id, words in queue.withdraw(text):  # emitted by a read that ended before this line
            transcript.replace_emitted([message_id])
            prompt = QueuedPrompt(f"withdrawn-{message_id}", words, at, origin)
            emit_queued_prompt(prompt, transcript, role="system", kind="withdrawn")
    return False


def emit_queued_prompt(
    prompt: QueuedPrompt, transcript: "Transcript", *, role: Role = "user", kind: str = "queued"
) -> None:
    """Emit a prompt that has no other line yet."""
    transcript.tree.set_message_count(transcript.tree.add(prompt.id, None, 0, None), 1)
    transcript.emit(
        Message(
            id=prompt.id,
            role=role,
            content=prompt.text,
            origin=prompt.origin,
            kind=kind,
            timestamp=prompt.at,
            timestamp_source="stored" if prompt.at else None,
            agent_id=transcript.agent_id,
            is_sidechain=transcript.agent_id is not None,
            attachments=prompt.attachments,
        )
    )


def parse_bare_tool(record: dict[str, Any], origin: Origin, id_: str, transcript: "Transcript") -> bool:
    """Emit a tool call or result that is a line of its own. Some third-party programs write these.

    A result without an id belongs to the oldest call of the same tool. Returns True.
    """
    name = as_text(record.get("name")) or "unknown"
    bare_calls = transcript.state.bare_calls
    if record.get("type") == "tool_use":
        new_id = as_text(record.get("id")) or f"line-{id_}"
        bare_calls.setdefault(name, []).append(new_id)
        tool = ToolCall(new_id, name, parse_params(record.get("input")))
        transcript.emit(Message(id=f"line-{id_}", role="tool", content="", origin=origin, tool=tool))
        return True
    call_id = as_text(record.get("tool_use_id"))
    call_ids = bare_calls.get(name, [])
    if call_id is not None:
        if call_id in call_ids:
            call_ids.remove(call_id)
    else:
        call_id = call_ids.pop(0) if call_ids else f"line-{id_}"
    if not call_ids:
        bare_calls.pop(name, None)
    result = fallback_result_text(record.get("output", record.get("content")))
    transcript.emit(ToolResult(tool_call_id=call_id, result=result, origin=origin))
    return True
