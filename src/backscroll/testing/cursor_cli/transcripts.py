"""Agent transcripts below ``projects/<slug>/agent-transcripts``: text without results, ids or most times."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from backscroll.testing import database
from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.messages import Message
from backscroll.testing.cursor.prompt_messages import thought, turns

__all__ = ["Layout", "lines", "slug", "spoken_time", "text", "write_transcript"]

Layout: TypeAlias = Literal["nested", "flat", "txt"]
Rule: TypeAlias = Literal["separators", "alphanumeric"]

_STEP = 60_000


def slug(path: str, *, rule: Rule = "separators") -> str:
    """A folder's name below ``projects``, by either of the two rules that have been seen."""
    if rule == "alphanumeric":
        return re.sub(r"[^A-Za-z0-9]", "-", path).lstrip("-")
    if re.match(r"[A-Za-z]:", path):
        path = path[0].lower() + path[1:]
    return re.sub(r"[/\\:]+", "-", path).strip("-")


def spoken_time(at: int, *, minutes: int = 120) -> str:
    """A time as Cursor tells it to the model: to the minute, in a zone that is so many minutes east."""
    local = datetime.fromtimestamp(at / 1000, UTC) + timedelta(minutes=minutes)
    hours, rest = divmod(abs(minutes), 60)
    zone = f"{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02d}" if rest else "")
    clock = f"{local.hour % 12 or 12}:{local.minute:02d} {'PM' if local.hour >= 12 else 'AM'}"
    return f"{local:%A, %b} {local.day}, {local.year}, {clock} (UTC{zone})"


def lines(
    messages: Sequence[Message],
    *,
    at: int | None = None,
    minutes: int = 120,
    status: Literal["success", "error", "aborted"] | None = "success",
    error: str | None = None,
) -> Iterator[dict[str, Any]]:
    """The records of a transcript. ``at`` stamps the prompts; ``status`` ends the last turn."""
    place = 0
    for turn in turns(messages):
        parts: list[dict[str, Any]] = []
        for message in turn:
            if message.role == "user":
                stamp = None if at is None else (message.at or at + place * _STEP)
                yield _line("user", [{"type": "text", "text": _query(message, stamp, minutes)}])
            else:
                if message.text and parts and parts[-1]["type"] == "tool_use":
                    yield _line("assistant", parts)
                    parts = []
                parts += _parts(message)
            place += 1
        if parts:
            yield _line("assistant", parts)
    if error is not None:
        yield {"type": "error", "error": error}
    if status is not None:
        yield {"type": "turn_ended", "status": status} | ({"error": error} if error is not None else {})


def text(messages: Sequence[Message]) -> str:
    """The same conversation as the oldest transcripts have it."""
    out: list[str] = []
    for turn in turns(messages):
        role = ""
        for message in turn:
            if message.role != role:
                role = message.role
                out.append(f"{role}:")
            out += _block(message)
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
    """Write a transcript below ``projects``; with a parent it is a subagent's. ``options`` go to `lines`.

    ``project`` is the slug itself, for the ones that come from no path.
    """
    folder = root / "projects" / (project or slug(cwd, rule=rule)) / "agent-transcripts"
    if parent is not None:
        path = folder / parent / "subagents" / f"{id}.jsonl"
    elif layout == "nested":
        path = folder / id / f"{id}.jsonl"
    else:
        path = folder / f"{id}.{'txt' if layout == 'txt' else 'jsonl'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if layout == "txt":
        path.write_text(text(messages))
    else:
        path.write_text("".join(f"{dumps(line)}\n" for line in lines(messages, **options)))
    database.set_mtime(path, mtime)
    return path


def _line(role: str, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"role": role, "message": {"content": list(parts)}}


def _query(message: Message, at: int | None, minutes: int) -> str:
    stamp = "" if at is None else f"<timestamp>{spoken_time(at, minutes=minutes)}</timestamp>\n"
    pictures = "[Image]\n" if message.fields.get("images") else ""
    return f"{stamp}{pictures}<user_query>\n{message.text}\n</user_query>"


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    if message.thinking is not None and not message.text:
        yield {"type": "text", "text": "[REDACTED]"}
    elif message.thinking is not None:
        yield {"type": "text", "text": f"{message.text}\n\n[REDACTED]"}
    elif message.text:
        yield {"type": "text", "text": message.text}
    if message.tool is not None:
        yield {"type": "tool_use", "name": message.tool.name, "input": dict(message.tool.params)}


def _block(message: Message) -> Iterator[str]:
    if message.role == "user":
        yield f"<user_query>\n{message.text}\n</user_query>"
        return
    if message.thinking is not None:
        yield f"[Thinking] {thought(message.thinking)}"
    if message.text:
        yield message.text
    if message.tool is not None:
        yield f"[Tool call] {message.tool.name}"
        for name, value in message.tool.params.items():
            yield f"  {name}: {value if isinstance(value, str) else dumps(value)}"
        yield f"\n[Tool result] {message.tool.name}"
