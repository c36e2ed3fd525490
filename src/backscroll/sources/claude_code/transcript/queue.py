"""Prompts that were typed while a turn was running. Since 2.1, ``claude -p`` queues every prompt.

A prompt is queued. When it is delivered, most versions write it again as a user line or an attachment. Some
versions deliver it during the turn without another line; then the queue operation has the only copy. A prompt
that was dequeued is delivered by the next user line, which can have another spelling: ``/cost`` is written as
``/usage``. A user can take prompts back from the queue to edit them; then they were never sent.
"""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.json import Decoder, encode

from backscroll.model.message import Attachment, Message, Origin, Role
from backscroll.readers import lenient_json, timestamps
from backscroll.sources.claude_code.transcript.line_structs import Block, to_attachment
from backscroll.sources.claude_code.transcript.subagents import notification_links, parse_report

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

_NOTIFICATION = re.compile(r"<[a-z]+-notification>|<task-id>|<teammate-message|<cross-session-message")
_MAX_ENTRIES = 256
_SEPARATOR = re.compile(r"[^\S\n]*\n\s*")  # between prompts that are delivered together

_block_decoder: Decoder[list[Any]] = Decoder(list[Block | list[Any] | str | int | float | bool | None])


class QueuedPrompt(Struct):
    """Prompt in the queue."""

    id: str
    text: str = field(name="text")  # the name in stored checkpoints
    at: datetime | None
    origin: Origin
    attachments: tuple[Attachment, ...] = ()
    copied_from: str | None = None  # the session that a fork copied it from


class Queue(Struct):
    """Queue of prompts, each identified by its text."""

    waiting: dict[str, QueuedPrompt] = field(default_factory=dict)
    emitted: dict[str, str] = field(default_factory=dict)  # message id by text
    delivered: set[str] = field(default_factory=set)
    dequeued: dict[str, QueuedPrompt] = field(default_factory=dict)  # the next user line delivers them
    order: list[str] = field(default_factory=list)  # of all entries; "" for a notification
    withdrawn: dict[str, QueuedPrompt] = field(default_factory=dict)  # taken back by the user
    pending: dict[str, QueuedPrompt] = field(default_factory=dict)  # waited at the end of an earlier read

    def enqueue(self, prompt: QueuedPrompt) -> None:
        key = prompt.text.strip()
        self._append(key)
        self.withdrawn.pop(key, None)
        if key not in self.delivered and key not in self.emitted:
            self.waiting.setdefault(key, prompt)

    def enqueue_notification(self) -> None:
        """Add an entry that the user did not type."""
        self._append("")

    def _append(self, key: str) -> None:
        self.order.append(key)
        if len(self.order) > _MAX_ENTRIES:
            del self.order[0]

    def dequeue(self) -> None:
        """Take the oldest entry from the queue."""
        key = self.order.pop(0) if self.order else ""
        prompt = self.waiting.pop(key, None) or self.pending.pop(key, None)
        if prompt is not None:
            self.dequeued[key] = prompt

    def remove_notification(self) -> None:
        """Remove an entry that the user did not type."""
        if "" in self.order:
            self.order.remove("")

    def remove(self, text: str | None) -> QueuedPrompt | None:
        """Remove and return a prompt, by default the oldest. It was probably delivered during the turn."""
        key = text.strip() if text is not None else next(iter(self.waiting), "")
        if key in self.order:
            self.order.remove(key)
        prompt = self.waiting.pop(key, None)
        if prompt is not None:
            self.emitted[key] = prompt.id
        return prompt

    def withdraw(self, text: str) -> list[tuple[str, str]]:
        """Take all prompts of the user from the queue, back into the input, where they are ``text``.

        Return message id and text of those that were emitted before.
        """
        self.withdrawn |= self.waiting
        self.waiting.clear()
        self.pending.clear()
        self.order = [key for key in self.order if not key]
        emitted = [(id_, key) for key, id_ in self.emitted.items() if key in text]
        for _, key in emitted:
            del self.emitted[key]
        return emitted

    def deliver(self, text: str) -> tuple[str, ...]:
        """Mark a prompt as delivered. Return the ids of the messages that were emitted for it before.

        Several prompts can be delivered as one, joined by newlines. Any other text delivers the dequeued
        prompts in another spelling.
        """
        key = text.strip()
        self.withdrawn.pop(key, None)
        if not (self.waiting or self.emitted or self.dequeued):
            return ()
        is_known = key in self.waiting or key in self.emitted or key in self.dequeued
        message_ids: list[str] = []
        for part in [key] if is_known else self._split_joined(key) or list(self.dequeued):
            self.dequeued.pop(part, None)
            self.pending.pop(part, None)
            if self.waiting.pop(part, None) is None and part in self.emitted:
                message_ids.append(self.emitted.pop(part))
            self.delivered.add(part)
        return tuple(message_ids)

    def take_refused(self) -> list[QueuedPrompt]:
        """Remove and return the dequeued commands that the tool refused. No other line contains them."""
        prompts = [
            prompt for key, prompt in self.dequeued.items() if key.startswith("/") and key not in self.emitted
        ]
        self.delivered |= self.dequeued.keys()
        self.dequeued.clear()
        return prompts

    def take_withdrawn(self) -> list[QueuedPrompt]:
        """Remove and return the prompts that the user took back and did not send."""
        prompts = [prompt for key, prompt in self.withdrawn.items() if key not in self.emitted]
        self.emitted |= {prompt.text.strip(): prompt.id for prompt in prompts}
        self.withdrawn.clear()
        return prompts

    def _split_joined(self, text: str) -> list[str]:
        """Split a text into queued prompts; empty if it contains anything else."""
        candidates = [key for key in {**self.emitted, **self.dequeued, **self.waiting} if key in text]
        reached: dict[int, tuple[int, str]] = {}  # end of a part: its start, and the part
        stack = [0]
        while stack:
            start = stack.pop()
            for key in candidates:
                if not text.startswith(key, start):
                    continue
                separator = _SEPARATOR.match(text, start + len(key))
                end = separator.end() if separator is not None else start + len(key)
                if (separator is not None or end == len(text)) and end not in reached:
                    reached[end] = start, key
                    stack.append(end)
        parts: list[str] = []
        end = len(text)
        while end in reached:
            end, part = reached[end]
            parts.append(part)
        return list(dict.fromkeys(reversed(parts)))

    def take_undelivered(self) -> list[QueuedPrompt]:
        """Remove and return the prompts that were never delivered."""
        undelivered = self.dequeued | self.waiting
        prompts = [prompt for key, prompt in undelivered.items() if key not in self.emitted]
        self.emitted |= {key: prompt.id for key, prompt in undelivered.items()}
        self.pending |= self.waiting
        self.waiting.clear()
        return prompts


# Lines of the type "queue-operation"


def parse_queue_operation(record: dict[str, Any], origin: Origin, id_: str, transcript: "Transcript") -> bool:
    """Apply a queue operation. Return True if it contains a prompt."""
    content = record.get("content")
    for link in notification_links(content):
        transcript.link(link)
        if (
            report := parse_report(content_text(content))
        ) is not None:  # its message is written when it is delivered
            transcript.state.agents.add_report(report)
    operation = record.get("operation")
    text = typed_prompt_text(content)
    if operation == "enqueue" and text.strip():
        at = timestamps.from_value(record.get("timestamp"))
        _, attachments = parse_prompt(content)
        prompt = QueuedPrompt(f"queued-{id_}", text, at, origin, attachments, _copied_from(record))
        transcript.state.queue.enqueue(prompt)
        return True
    queue = transcript.state.queue
    if operation == "enqueue":
        queue.enqueue_notification()
    elif operation == "dequeue":
        queue.dequeue()
    elif operation == "remove" and (text.strip() or content is None):
        removed = queue.remove(text or None)
        if removed is not None:
            emit_queued_prompt(removed, transcript)
    elif operation == "remove":
        queue.remove_notification()
    elif operation == "popAll":
        at = timestamps.from_value(record.get("timestamp"))
        for message_id, words in queue.withdraw(text):  # emitted by a read that ended before this line
            transcript.replace_emitted([message_id])
            prompt = QueuedPrompt(f"withdrawn-{message_id}", words, at, origin, (), _copied_from(record))
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
            copied_from=prompt.copied_from,
        )
    )


def _copied_from(record: dict[str, Any]) -> str | None:
    origin = record.get("forkedFrom")
    session_id = origin.get("sessionId") if isinstance(origin, dict) else None
    return session_id if isinstance(session_id, str) else None


# The content of a prompt


def parse_prompt(content: Any) -> tuple[str, tuple[Attachment, ...]]:
    """Return the text and the attachments of a queued prompt."""
    try:
        blocks = _block_decoder.decode(encode(content)) if isinstance(content, list) else []
    except lenient_json.FAILURES:
        blocks = []
    attachments = (to_attachment(block) for block in blocks if isinstance(block, Block))
    return content_text(content), tuple(each for each in attachments if each is not None)


def typed_prompt_text(content: Any) -> str:
    """Return the text of a queued prompt; empty if the tool queued it, not the user."""
    text = content_text(content)
    return "" if _NOTIFICATION.match(text.lstrip()) or _is_object(text) else text


def content_text(content: Any) -> str:
    """Return the text of a prompt, which is a string or a list of content blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [block if isinstance(block, str) else block.get("text") for block in content if _is_text(block)]
    return "\n".join(block for block in blocks if isinstance(block, str))


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and block.get("type") == "text")


def _is_object(text: str) -> bool:
    """Return whether a text is one JSON object, as some notifications are."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(lenient_json.load(text), dict)
    except lenient_json.FAILURES:
        return False
