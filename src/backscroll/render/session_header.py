"""What stands at the head of a session, whatever it is written as."""

from datetime import UTC, datetime

from backscroll.model import Attachment, Message, SessionSummary
from backscroll.model.sanitize import one_line

__all__ = [
    "attachment_label",
    "format_time",
    "header_fields",
    "message_heading",
    "session_title",
    "speaker_label",
]

_WIDTH = 300
_SPEAKERS = {
    "user": "You", "assistant": "Assistant", "thinking": "Thinking", "error": "Error", "system": "System"
}  # fmt: skip


def session_title(summary: SessionSummary) -> str:
    """A session's title in one line, or its ref."""
    return one_line(summary.title or "", _WIDTH) or one_line(summary.ref, _WIDTH)


def format_time(at: datetime | None, *, is_inferred: bool = False) -> str:
    """A time in UTC; ``~`` marks one that was inferred."""
    if at is None:
        return ""
    return f"{'~' if is_inferred else ''}{at.astimezone(UTC).strftime('%Y-%m-%d %H:%M')}"


def speaker_label(message: Message, *, is_agent: bool = False) -> str:
    """Who says it; in a subagent the user is whoever started it."""
    name = "Task" if is_agent and message.role == "user" else _SPEAKERS.get(message.role, message.role)
    marks = [message.kind] if message.kind and message.kind != "task" else []
    marks += [] if message.is_active else ["abandoned"]
    return f"{name} ({', '.join(one_line(mark, 60) for mark in marks)})" if marks else name


def message_heading(message: Message, *, is_agent: bool = False) -> str:
    """Who says it, and when."""
    is_inferred = message.timestamp_source not in (None, "stored")
    at = format_time(message.timestamp, is_inferred=is_inferred)
    return " · ".join(part for part in (speaker_label(message, is_agent=is_agent), at) if part)


def attachment_label(attachment: Attachment) -> str:
    """What came along, in a line."""
    name = attachment.name or attachment.path
    return one_line(f"{attachment.kind}: {name}" if name else attachment.kind, _WIDTH)


def header_fields(summary: SessionSummary) -> list[tuple[str, str]]:
    """What is known of a session, as names and values in one line each; unknown is left out."""
    begun, last = format_time(summary.created_at), format_time(summary.updated_at)
    when = f"{begun} to {last}" if begun and last and begun != last else begun or last
    notes: list[str] = [] if summary.completeness == "complete" else [summary.completeness]
    notes += ["no longer in the tool's own store"] if summary.is_gone else []
    known = [
        ("Session", summary.ref),
        ("Subagent of", summary.parent_ref or ""),
        ("Workspace", summary.workspace_path or summary.workspace_name or ""),
        ("Branch", summary.git_branch or ""),
        ("When", f"{when} UTC" if when else ""),
        ("Model", ", ".join(summary.models)),
        ("Messages", f"{summary.message_count:,}"),
        ("Tokens", f"{summary.total_tokens:,}" if summary.total_tokens is not None else ""),
        ("Lines changed", f"{summary.total_changes:,}" if summary.total_changes else ""),
        ("Note", ", ".join(notes)),
    ]
    return [(name, one_line(value, _WIDTH)) for name, value in known if value]
