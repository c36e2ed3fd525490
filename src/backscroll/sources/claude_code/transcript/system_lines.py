"""Parse lines beside the conversation: notices, attachments, progress, bare tool lines."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.message import Attachment, Message, Origin, Role, ToolCall
from backscroll.model.problem import Problem
from backscroll.model.stream import ToolResult
from backscroll.sources.claude_code.transcript import message_lines, user_text
from backscroll.sources.claude_code.transcript.line_structs import (
    Attached,
    Line,
    as_text,
    fallback_result_text,
    parse_params,
)
from backscroll.sources.claude_code.transcript.queue import content_text, parse_prompt, typed_prompt_text
from backscroll.sources.claude_code.transcript.state import LineContext
from backscroll.sources.claude_code.transcript.subagents import progress_link

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

_SUBTYPES_WITHOUT_TEXT = frozenset({"turn_duration", "stop_hook_summary", "microcompact_boundary"})
_SUBTYPES_WITH_TEXT = frozenset(
    {
        "compact_boundary",
        "informational",
        "away_summary",
        "bridge_status",
        "memory_saved",
        "agents_killed",
        "scheduled_task_fire",
        "permission_retry",
        "cloud_session_status",
        "session_start",
        "api_refusal",
        "model_refusal_fallback",
    }
)

# All are context for the model except `queued_command`, which the user may have typed.
_ATTACHMENT_TYPES = frozenset(
    {
        "queued_command", "file", "edited_text_file", "compact_file_reference", "already_read_file",
        "directory",
        "nested_memory", "invoked_skills", "dynamic_skill", "skill_listing", "hook_success",
        "hook_blocking_error", "hook_non_blocking_error", "hook_cancelled", "hook_additional_context",
        "hook_system_message", "hook_permission_decision", "hook_stopped_continuation", "async_hook_response",
        "task_reminder", "todo_reminder", "task_status", "plan_mode", "plan_mode_exit", "plan_mode_reentry",
        "plan_file_reference", "auto_mode", "auto_mode_exit", "command_permissions", "deferred_tools_delta",
        "deferred_tools_record", "mcp_instructions_delta", "agent_listing_delta", "date", "date_change",
        "model",
        "environment", "session_context", "prompt_snapshot", "instructions", "credential_org",
        "remote_session_change", "budget_usd", "total_tokens_reminder", "batching_reminder_sent",
        "silent_turn_reminder", "read_truncation_notice", "thinking_drop", "bash_output_audience_note",
        "goal_status", "max_turns_reached", "ultrathink_effort", "ultra_effort_enter", "ultra_effort_exit",
        "companion_intro", "structured_output", "unknown_command_fallback",
    }
)  # fmt: skip
_MENTION_TYPES = frozenset({"file", "directory", "already_read_file"})  # mentioned with "@", after a prompt


# Notices to the user


class _Notice(Struct):
    """Messages of a system line and the ids that it retracts."""

    kind: str
    messages: list[tuple[str, Role, str]]  # kind, role and text
    unknown_subtype: str | None = None
    retracted_ids: list[str] = []


def parse_system(context: LineContext) -> None:
    """Emit the messages of a system line."""
    context.add_to_tree(0)
    if not context.line.raw:
        return  # too large to decode; already a problem
    transcript = context.transcript
    notice = _parse_notice(context.value, context.full_record)
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


def _parse_notice(value: Line, full_record: Callable[[], dict[str, Any]]) -> _Notice:
    """Return the messages of a system line, if it has any. ``full_record`` decodes the complete line."""
    subtype = as_text(value.subtype)
    content = as_text(value.content)
    if subtype == "api_error":
        return _Notice("api_error", [("api_error", "error", _format_api_error(full_record()))])
    if subtype == "local_command":
        parts = user_text.split_parts([content]) if content else []
        # 2.1.212 writes an unknown command as typed, without tags.
        untagged = "command" if content is not None and content.startswith("/") else "notice"
        # A command without output, such as /clear, has an empty part.
        texts = [(part.kind or untagged, part.content) for part in parts if part.content]
        return _Notice("local_command", [(kind, "system", text) for kind, text in texts])
    kind = subtype or "notice"
    messages: list[tuple[str, Role, str]] = [(kind, "system", content)] if content else []
    if subtype in _SUBTYPES_WITHOUT_TEXT:
        return _Notice(kind, [])
    if subtype is None or subtype in _SUBTYPES_WITH_TEXT:
        ids = value.retracted_message_uuids
        retracted = [id_ for id_ in ids if isinstance(id_, str)] if isinstance(ids, list) else []
        return _Notice(kind, messages, retracted_ids=retracted)
    return _Notice(kind, messages, unknown_subtype=subtype)


def _format_api_error(record: dict[str, Any]) -> str:
    """Format a failed request: the server's message and the attempt."""
    error = record.get("error")
    message = None
    status = None
    if isinstance(error, dict):
        inner = error.get("error")
        innermost = inner.get("error") if isinstance(inner, dict) else None
        candidates = [error.get("formatted"), error.get("message")]
        candidates += [found.get("message") for found in (innermost, inner) if isinstance(found, dict)]
        message = next((found for found in candidates if isinstance(found, str) and found), None)
        status = error.get("status")
    elif isinstance(error, str):
        message = error
    parts = ["API error"]
    if isinstance(status, int):
        parts.append(str(status))
    line = " ".join(parts) + (f": {message}" if message else "")
    attempt, max_attempts = record.get("retryAttempt"), record.get("maxRetries")
    if isinstance(attempt, int) and isinstance(max_attempts, int):
        line += f" (attempt {attempt} of {max_attempts})"
    return line


# Attachments


def parse_attachment(context: LineContext) -> None:
    """Emit a prompt that was delivered as an attachment. Other attachments are ignored."""
    context.add_to_tree(0)
    if not context.raw:
        return
    transcript = context.transcript
    typed = context.value.attachment
    kind = as_text(typed.type) if isinstance(typed, Attached) else None
    if not _is_known_attachment(kind):
        transcript.counts.add_unknown(f"attachment {kind}")
        transcript.add_problem(Problem(context.origin, "unknown-type", f"unknown attachment {kind}"))
        return
    if kind not in _MENTION_TYPES and kind != "queued_command":
        return
    attachment = context.full_record().get("attachment")
    if not isinstance(attachment, dict):
        return
    if kind != "queued_command":
        _attach_file(_parse_mention(attachment), context)
        return
    if not _is_typed_prompt(attachment):
        message_lines.add_report(content_text(attachment.get("prompt")), context)
        return
    text, attachments = parse_prompt(attachment.get("prompt"))
    if text.strip() or attachments:
        transcript.mark_delivered(text)
        message = context.add_message("user", text, kind="queued", attachments=attachments)
        transcript.state.last_prompt = message


def _is_known_attachment(kind: str | None) -> bool:
    """Return whether an attachment of this type is known."""
    return kind is not None and (kind in _ATTACHMENT_TYPES or kind.startswith("output_style"))


def _is_typed_prompt(attachment: dict[str, Any]) -> bool:
    """Return whether the user typed a queued command."""
    origin = attachment.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    if kind == "human":
        return True
    if kind is not None or attachment.get("isMeta") is True:
        return False
    return attachment.get("commandMode") in (None, "prompt") and bool(
        typed_prompt_text(attachment.get("prompt"))
    )


def _parse_mention(attachment: dict[str, Any]) -> Attachment:
    """Return a file or folder that the user mentioned in a prompt."""
    path = as_text(attachment.get("filename")) or as_text(attachment.get("path"))
    content = attachment.get("content")
    file = content.get("file") if isinstance(content, dict) else None
    text = as_text(file.get("content")) if isinstance(file, dict) else None
    return Attachment(
        "folder" if attachment.get("type") == "directory" else "file",
        name=as_text(attachment.get("displayPath")) or path,
        size=len(text.encode("utf-8", "surrogatepass")) if text is not None else None,
        path=path,
    )


def _attach_file(mention: Attachment, context: LineContext) -> None:
    """Add a file that the user mentioned with ``@`` to the prompt above this line."""
    state = context.transcript.state
    prompt = state.last_prompt
    if prompt is not None and mention not in prompt.attachments:
        state.last_prompt = replace(prompt, attachments=(*prompt.attachments, mention))
        context.transcript.emit(state.last_prompt)


# Progress of subagents


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


# Tool lines outside of messages


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
