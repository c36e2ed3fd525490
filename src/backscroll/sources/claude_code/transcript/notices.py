"""Parse system lines and attachments: notices to the user and context for the model."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder, encode

from backscroll.model import Attachment, Role
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.transcript import user_text
from backscroll.sources.claude_code.transcript.content_blocks import to_attachment
from backscroll.sources.claude_code.transcript.line_structs import Block, Line, as_text
from backscroll.sources.claude_code.transcript.queue import content_text, typed_prompt_text

__all__ = [
    "MENTION_TYPES",
    "Notice",
    "is_known_attachment",
    "is_typed",
    "parse_mention",
    "parse_notice",
    "parse_prompt",
]

_blocks: Decoder[list[Any]] = Decoder(list[Block | list[Any] | str | int | float | bool | None])

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


MENTION_TYPES = frozenset({"file", "directory", "already_read_file"})  # mentioned with "@", after a prompt


class Notice(Struct):
    """Messages of a system line and the ids that it retracts."""

    kind: str
    messages: list[tuple[str, Role, str]]  # kind, role and text
    unknown_subtype: str | None = None
    retracted_ids: list[str] = []


def parse_notice(value: Line, full_record: Callable[[], dict[str, Any]]) -> Notice:
    """Return the messages of a system line, if it has any. ``full_record`` decodes the complete line."""
    subtype = as_text(value.subtype)
    content = as_text(value.content)
    if subtype == "api_error":
        return Notice("api_error", [("api_error", "error", _format_api_error(full_record()))])
    if subtype == "local_command":
        parts = user_text.split_parts([content]) if content else []
        # 2.1.212 writes an unknown command as typed, without tags.
        untagged = "command" if content is not None and content.startswith("/") else "notice"
        # A command without output, such as /clear, has an empty part.
        texts = [(part.kind or untagged, part.content) for part in parts if part.content]
        return Notice("local_command", [(kind, "system", text) for kind, text in texts])
    kind = subtype or "notice"
    messages: list[tuple[str, Role, str]] = [(kind, "system", content)] if content else []
    if subtype in _SUBTYPES_WITHOUT_TEXT:
        return Notice(kind, [])
    if subtype is None or subtype in _SUBTYPES_WITH_TEXT:
        ids = value.retracted_message_uuids
        retracted = [id_ for id_ in ids if isinstance(id_, str)] if isinstance(ids, list) else []
        return Notice(kind, messages, retracted_ids=retracted)
    return Notice(kind, messages, unknown_subtype=subtype)


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


def is_known_attachment(kind: str | None) -> bool:
    """Return whether an attachment of this type is known."""
    return kind is not None and (kind in _ATTACHMENT_TYPES or kind.startswith("output_style"))


def parse_prompt(content: Any) -> tuple[str, tuple[Attachment, ...]]:
    """Return the text and the attachments of a queued prompt."""
    try:
        blocks = _blocks.decode(encode(content)) if isinstance(content, list) else []
    except lenient_json.FAILURES:
        blocks = []
    attachments = (to_attachment(block) for block in blocks if isinstance(block, Block))
    return content_text(content), tuple(each for each in attachments if each is not None)


def parse_mention(attachment: dict[str, Any]) -> Attachment:
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


def is_typed(attachment: dict[str, Any]) -> bool:
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
