"""Prompts that were typed while a turn was running.

They are queued, and normally written again as a user line or an attachment when they are delivered. Some
versions deliver them during a turn without another line. Then the line of the queue is the only copy.
"""

import re
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from backscroll.model import Attachment, Origin, SubagentLink
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.transcript.line_types import text

__all__ = ["Queue", "Waiting", "links_in", "prompt_text", "words_of"]

_NOTICE = re.compile(r"<[a-z]+-notification>|<task-id>|<teammate-message|<cross-session-message")
_TASK = re.compile(r"<task-id>\s*([^<\s]+)\s*</task-id>")
_GAP = re.compile(r"[^\S\n]*\n\s*")  # between prompts that are delivered together
_TOOL_USE = re.compile(r"<tool-use-id>\s*([^<\s]+)\s*</tool-use-id>")


class Waiting(Struct):
    """A prompt in the queue."""

    id: str
    words: str
    at: datetime | None
    origin: Origin
    attachments: tuple[Attachment, ...] = ()


class Queue(Struct):
    """Prompts that were queued and have no other line yet."""

    waiting: dict[str, Waiting] = field(default_factory=dict)
    emitted: dict[str, str] = field(default_factory=dict)  # ids of the messages that were emitted for them
    delivered: set[str] = field(default_factory=set)

    def enqueue(self, waiting: Waiting) -> None:
        key = waiting.words.strip()
        if key not in self.delivered and key not in self.emitted:
            self.waiting.setdefault(key, waiting)

    def removed(self, words: str | None) -> Waiting | None:
        """Remove a prompt from the queue and return it. It was probably delivered during the turn."""
        key = words.strip() if words is not None else next(iter(self.waiting), "")
        waiting = self.waiting.pop(key, None)
        if waiting is not None:
            self.emitted[key] = waiting.id
        return waiting

    def deliver(self, words: str) -> tuple[str, ...]:
        """Mark a prompt as delivered. Return the ids of the messages that were emitted for it before.

        Several prompts can be delivered as one, joined by newlines.
        """
        if not self.waiting and not self.emitted:
            return ()
        key = words.strip()
        early: list[str] = []
        for part in [key] if key in self.waiting or key in self.emitted else self._parts(key):
            if self.waiting.pop(part, None) is None and part in self.emitted:
                early.append(self.emitted.pop(part))
            self.delivered.add(part)
        return tuple(early)

    def _parts(self, words: str) -> list[str]:
        """Split a text into queued prompts; empty if it contains anything else."""
        known = [key for key in (*self.emitted, *self.waiting) if key in words]
        reached: dict[int, tuple[int, str]] = {}  # possible start of a part, and the part before it
        open_ = [0]
        while open_:
            place = open_.pop()
            for key in known:
                if not words.startswith(key, place):
                    continue
                gap = _GAP.match(words, place + len(key))
                end = gap.end() if gap is not None else place + len(key)
                if (gap is not None or end == len(words)) and end not in reached:
                    reached[end] = place, key
                    open_.append(end)
        parts: list[str] = []
        place = len(words)
        while place in reached:
            place, part = reached[place]
            parts.append(part)
        return list(dict.fromkeys(reversed(parts)))

    def take_rest(self) -> list[Waiting]:
        """Remove and return the prompts that were never delivered."""
        rest = list(self.waiting.values())
        self.emitted |= {key: waiting.id for key, waiting in self.waiting.items()}
        self.waiting.clear()
        return rest


def prompt_text(content: Any) -> str:
    """Return the text of a queued prompt; empty if the tool queued it."""
    words = words_of(content)
    return "" if _NOTICE.match(words.lstrip()) or _is_object(words) else words


def words_of(content: Any) -> str:
    """Return the text of a prompt in either of its forms."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [block if isinstance(block, str) else block.get("text") for block in content if _is_text(block)]
    return "\n".join(block for block in blocks if isinstance(block, str))


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and block.get("type") == "text")


def _is_object(words: str) -> bool:
    """Return whether a text is one JSON object, as some notifications are."""
    if not words.lstrip().startswith("{"):
        return False
    try:
        return isinstance(lenient_json.load(words), dict)
    except lenient_json.FAILURES:
        return False


def links_in(content: Any) -> list[SubagentLink]:
    """Return the links between calls and subagents in a queued notification."""
    words = text(content)
    if words is None or "<task-id>" not in words:
        return []
    tasks, calls = _TASK.findall(words), _TOOL_USE.findall(words)
    return [
        SubagentLink(agent_id=task, tool_call_id=call, evidence="queued notification", strength=4)
        for task, call in zip(tasks, calls, strict=False)
    ]
