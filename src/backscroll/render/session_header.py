"""Title, header fields, message headings and file names, shared by all formats."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from backscroll.model.message import Attachment, Message
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, pluralize, sanitize

_MAX_FIELD_CHARS = 300
_SPEAKERS = {
    "user": "You", "assistant": "Assistant", "thinking": "Thinking", "error": "Error", "system": "System"
}  # fmt: skip
_ID_CHARS = 8
_MAX_TITLE_CHARS = 60


def session_title(summary: SessionSummary) -> str:
    """Return a session's title in one line, or its ref if it has none."""
    return one_line(summary.title or "", _MAX_FIELD_CHARS) or one_line(summary.ref, _MAX_FIELD_CHARS)


def session_label(summary: SessionSummary) -> str:
    """Return title and workspace of a session in one line, for use in a sentence."""
    title = one_line(summary.title or "", _MAX_FIELD_CHARS)
    label = f'"{title}"' if title else "untitled"
    workspace = one_line(summary.workspace_name or "", _MAX_FIELD_CHARS)
    return f"{label} in {workspace}" if workspace else label


def searchable_text(summary: SessionSummary) -> str:
    """Return what a list finds while the user types, in lower case."""
    parts = (
        summary.title, summary.original_title, summary.workspace_path, summary.workspace_name,
        summary.git_branch, summary.ref, summary.first_message_preview,
        *(f"#{tag}" for tag in summary.tags), *summary.models,
    )  # fmt: skip
    return "\n".join(part for part in parts if part).casefold()


def format_time(at: datetime | None, *, is_inferred: bool = False, zone: tzinfo | None = UTC) -> str:
    """Return a time, with ``~`` before an inferred one; empty if unknown. The zone None is local time."""
    if at is None:
        return ""
    return f"{'~' if is_inferred else ''}{at.astimezone(zone).isoformat(' ', 'minutes')[:16]}"


def speaker_label(message: Message, *, is_agent: bool = False) -> str:
    """Return the author of a message. The first message of a subagent is its task."""
    name = "Task" if is_agent and message.role == "user" else _SPEAKERS.get(message.role, message.role)
    notes = [message.kind] if message.kind and message.kind != "task" else []
    notes += [] if message.is_active else ["abandoned"]
    return f"{name} ({', '.join(one_line(note, 60) for note in notes)})" if notes else name


def message_heading(message: Message, *, is_agent: bool = False, zone: tzinfo | None = UTC) -> str:
    """Return author and time of a message. The zone None is local time."""
    at = format_time(message.timestamp, is_inferred=message.has_inferred_time, zone=zone)
    return " · ".join(part for part in (speaker_label(message, is_agent=is_agent), at) if part)


def attachment_label(attachment: Attachment) -> str:
    """Return kind and name of an attachment in one line."""
    name = attachment.name or attachment.path
    return one_line(f"{attachment.kind}: {name}" if name else attachment.kind, _MAX_FIELD_CHARS)


def header_fields(summary: SessionSummary, *, zone: tzinfo | None = UTC) -> list[tuple[str, str]]:
    """Return the known properties of a session as label and value, each in one line.

    The zone None is local time.
    """
    notes: list[str] = [] if summary.completeness == "complete" else [summary.completeness]
    notes += ["no longer in the tool's history"] if summary.is_gone else []
    fields = [
        ("Session", summary.ref),
        ("Subagent of", summary.parent_ref or ""),
        ("Workspace", summary.workspace_path or summary.workspace_name or ""),
        ("Branch", summary.git_branch or ""),
        ("Time", _time_range(summary.created_at, summary.updated_at, zone)),
        ("Model", ", ".join(summary.models)),
        ("Messages", f"{summary.message_count:,}"),
        ("Tokens", f"{summary.total_tokens:,}" if summary.total_tokens is not None else ""),
        ("Lines changed", f"{summary.total_changes:,}" if summary.total_changes else ""),
        ("Note", ", ".join(notes)),
    ]
    return [(name, one_line(value, _MAX_FIELD_CHARS)) for name, value in fields if value]


def _time_range(started: datetime | None, updated: datetime | None, zone: tzinfo | None) -> str:
    times = [at for at in (started, updated) if at is not None]
    if not times:
        return ""
    text = " to ".join(dict.fromkeys(format_time(at, zone=zone) for at in times))
    return f"{text} {times[0].astimezone(zone):%Z}"


def subagent_facts(summary: SessionSummary, *, is_placed: bool) -> str:
    """Return the size of a subagent, and whether the call that started it is unknown."""
    facts = [pluralize(summary.message_count, "message")]
    facts += [pluralize(summary.total_tokens, "token")] if summary.total_tokens is not None else []
    return ", ".join(facts if is_placed else [*facts, "started by an unknown call"])


def file_names(summaries: Sequence[SessionSummary], suffix: str) -> list[str]:
    """Return a stable file name for each session. The whole id is used only if two names would be equal."""
    names = [f"{_stem(one)}-{_plain(one.id[:_ID_CHARS])}.{suffix}" for one in summaries]
    shared = Counter(name.casefold() for name in names)
    return [
        f"{_stem(one)}-{_plain(one.id)}{_parent(one)}.{suffix}" if shared[name.casefold()] > 1 else name
        for one, name in zip(summaries, names, strict=True)
    ]


def file_name(summary: SessionSummary, suffix: str = "md") -> str:
    """Return the file name of one session."""
    return file_names([summary], suffix)[0]


def _stem(summary: SessionSummary) -> str:
    day = summary.created_at.strftime("%Y-%m-%d") if summary.created_at is not None else "undated"
    slug = _slug(summary.title or "")
    return f"{day}-{slug}" if slug else day


def _parent(summary: SessionSummary) -> str:
    return f"-{_plain(summary.parent_ref.partition(':')[2][:_ID_CHARS])}" if summary.parent_ref else ""


def _slug(title: str) -> str:
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", sanitize(title[:1000])).lower().replace("'", ""))
    slug = "-".join(words).replace("_", "-")
    start = slug[:_MAX_TITLE_CHARS]
    return slug if slug == start else start.rpartition("-")[0] or start


def _plain(id_: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", id_)
