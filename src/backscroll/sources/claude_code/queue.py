"""Prompts typed while a turn was running.

They are queued, and normally come back as a user line or an attachment when they
are delivered. Some builds delivered them in the middle of a turn and wrote no
other line: then the queue's own line is the only place the words survive.
"""

import re
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from backscroll.model import Link, Origin
from backscroll.sources.claude_code.blocks import blocks_of
from backscroll.sources.claude_code.lines import Block, text

__all__ = ["Queue", "Waiting", "links_in", "prompt_text"]

_TASK = re.compile(r"<task-id>\s*([^<\s]+)\s*</task-id>")
_TOOL_USE = re.compile(r"<tool-use-id>\s*([^<\s]+)\s*</tool-use-id>")


class Waiting(Struct):
    """A prompt in the queue."""

    words: str
    at: datetime | None
    origin: Origin
    line: int
    is_told: bool = False


class Queue(Struct):
    """What was queued and has not been seen delivered."""

    waiting: dict[str, Waiting] = field(default_factory=dict)
    delivered: set[str] = field(default_factory=set)

    def enqueue(self, words: str, at: datetime | None, origin: Origin, line: int) -> None:
        key = words.strip()
        if key and key not in self.delivered:
            self.waiting.setdefault(key, Waiting(words, at, origin, line))

    def removed(self, words: str | None) -> Waiting | None:
        """A prompt taken out of the queue and not yet told: most likely delivered in mid-turn."""
        for key, waiting in self.waiting.items():
            if not waiting.is_told and (words is None or key == words.strip()):
                waiting.is_told = True
                return waiting
        return None

    def deliver(self, words: str) -> int | None:
        """Note that words arrived elsewhere; the queue line that was told of them too early, if any."""
        if not self.waiting:
            return None
        waiting = self.waiting.pop(words.strip(), None)
        if waiting is None:
            return None
        self.delivered.add(words.strip())
        return waiting.line if waiting.is_told else None

    def rest(self) -> list[Waiting]:
        """What was never delivered and not told yet."""
        return [waiting for waiting in self.waiting.values() if not waiting.is_told]


def prompt_text(content: Any) -> str:
    """A queued prompt's words; empty for what the tool queued for itself."""
    if isinstance(content, str):
        words = content
    elif isinstance(content, list):
        found = [Block(type=b.get("type"), text=b.get("text")) if isinstance(b, dict) else b for b in content]
        words = "\n".join(b.text for b in blocks_of(found) if isinstance(b.text, str))
    else:
        return ""
    start = words.lstrip()
    if re.match(r"<[a-z]+-notification>|<task-id>|<teammate-message|<cross-session-message|\{\"", start):
        return ""
    return words


def links_in(content: Any) -> list[Link]:
    """Which call started which agent, as a queued notification tells it."""
    words = text(content)
    if words is None or "<task-id>" not in words:
        return []
    tasks, calls = _TASK.findall(words), _TOOL_USE.findall(words)
    return [
        Link(agent_id=task, tool_call_id=call, evidence="queued notification", strength=4)
        for task, call in zip(tasks, calls, strict=False)
    ]
