"""Agent transcripts in ``projects/<slug>/agent-transcripts``.

They contain no tool results, no ids and few times.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from backscroll.testing import database
from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.messages import Message
from backscroll.testing.cursor.prompt_messages import split_turns, thinking_text

Layout: TypeAlias = Literal["nested", "flat", "txt"]
Rule: TypeAlias = Literal["separators", "alphanumeric"]

_MESSAGE_INTERVAL_MS = 60_000


def project_slug(path: str, *, rule: Rule = "separators") -> str:
    """Return the name of a folder below ``projects``. Two rules are known."""
    if rule == "alphanumeric":
        return re.sub(r"[^A-Za-z0-9]", "-", path).lstrip("-")
    if re.match(r"[A-Za-z]:", path):
        path = path[0].lower() + path[1:]
    return re.sub(r"[/\\:]+", "-", path).strip("-")


def format_prompt_time(at: int, *, minutes: int = 120) -> str:
    """Format a time as in prompts for the model, in a zone ``minutes`` east of UTC."""
    local_time = datetime.fromtimestamp(at / 1000, UTC) + timedelta(minutes=minutes)
    hours, rest = divmod(abs(minutes), 60)
    zone = f"{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02d}" if rest else "")
    clock = f"{local_time.hour % 12 or 12}:{local_time.minute:02d} {'PM' if local_time.hour >= 12 else 'AM'}"
    return f"{local_time:%A, %b} {local_time.day}, {local_time.year}, {clock} (UTC{zone})"


def transcript_records(
    messages: Sequence[Message],
    *,
    at: int | None = None,
    minutes: int = 120,
    status: Literal["success", "error", "aborted"] | None = "success",
    error: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the records of a transcript. ``at`` adds times to the prompts; ``status`` ends the last turn."""
    index = 0
    for turn in split_turns(messages):
        parts: list[dict[str, Any]] = []
        for message in turn:
            if message.role == "user":
                time = None if at is None else (message.at or at + index * _MESSAGE_INTERVAL_MS)
                yield _record("user", [{"type": "text", "text": _query(message, time, minutes)}])
            else:
                if message.text and parts and parts[-1]["type"] == "tool_use":
                    yield _record("assistant", parts)
                    parts = []
                parts += _parts(message)
            index += 1
        if parts:
            yield _record("assistant", parts)
    if error is not None:
        yield {"type": "error", "error": error}
    if status is not None:
        yield {"type": "turn_ended", "status": status} | ({"error": error} if error is not None else {})


def transcript_text(messages: Sequence[Message]) -> str:
    """Return a conversation in the text format of the oldest transcripts."""
    out: list[str] = []
    for turn in split_turns(messages):
        role = ""
        for message in turn:
            if message.role != role:
                role = message.role
                out.append(f"{role}:")
            out += _text_lines(message)
            out.append("")
    return "\n".join(out)


def write_transcript(
    root: Path,
    messages: Sequence[Message],
    *,
    id: str,
    cwd: str = "/home/dev/shop",
    layout: Layout = "nested",
    rule: Rule = "separators",
    project: str | None = None,
    parent: str | None = None,
    mtime: int = 1790000420000,
    **options: Any,
) -> Path:
    """Write a transcript below ``projects``. With ``parent`` it belongs to a subagent.

    ``project`` replaces the slug of ``cwd``. ``options`` are passed to `transcript_records`.
    """
    folder = root / "projects" / (project or project_slug(cwd, rule=rule)) / "agent-transcripts"
    if parent is not None:
        path = folder / parent / "subagents" / f"{id}.jsonl"
    elif layout == "nested":
        path = folder / id / f"{id}.jsonl"
    else:
        path = folder / f"{id}.{'txt' if layout == 'txt' else 'jsonl'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if layout == "txt":
        path.write_text(transcript_text(messages))
    else:
        path.write_text("".join(f"{dumps(line)}\n" for line in transcript_records(messages, **options)))
    database.set_mtime(path, mtime)
    return path


def _record(role: str, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"role": role, "message": {"content": list(parts)}}


def _query(message: Message, at: int | None, minutes: int) -> str:
    timestamp = "" if at is None else f"<timestamp>{format_prompt_time(at, minutes=minutes)}</timestamp>\n"
    image = "[Image]\n" if message.fields.get("images") else ""
    return f"{timestamp}{image}<user_query>\n{message.text}\n</user_query>"


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    if message.thinking is not None and not message.text:
        yield {"type": "text", "text": "[REDACTED]"}
    elif message.thinking is not None:
        yield {"type": "text", "text": f"{message.text}\n\n[REDACTED]"}
    elif message.text:
        yield {"type": "text", "text": message.text}
    if message.tool is not None:
        yield {"type": "tool_use", "name": message.tool.name, "input": dict(message.tool.params)}


def _text_lines(message: Message) -> Iterator[str]:
    if message.role == "user":
        yield f"<user_query>\n{message.text}\n</user_query>"
        return
    if message.thinking is not None:
        yield f"[Thinking] {thinking_text(message.thinking)}"
    if message.text:
        yield message.text
    if message.tool is not None:
        yield f"[Tool call] {message.tool.name}"
        for name, value in message.tool.params.items():
            yield f"  {name}: {value if isinstance(value, str) else dumps(value)}"
        yield f"\n[Tool result] {message.tool.name}"
