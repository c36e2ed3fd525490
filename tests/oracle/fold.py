"""Assemble the stream of one unit into whole sessions in memory."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.message import Message, TokenUsage
from backscroll.model.problem import Problem
from backscroll.model.stream import (
    ORPHAN_RESULT,
    Closing,
    Item,
    Opening,
    RecordCounts,
    Replacement,
    SubagentLink,
    TitleHint,
    ToolResult,
    UsageReport,
    is_same_response,
    merge_repeated_call,
    message_for_orphan_result,
    with_result,
)


class ParsedSession(Struct, frozen=True):
    """One session as read from one unit."""

    opening: Opening
    closing: Closing
    messages: tuple[Message, ...]
    orphan_usage: dict[str, TokenUsage] = {}  # of responses without a message

    @property
    def usage(self) -> dict[str, TokenUsage]:
        """Tokens by response, each response once; a message without a response counts by its own id."""
        return {
            m.response_id or m.id: m.usage for m in self.messages if m.usage is not None
        } | self.orphan_usage


class UnitContent(Struct, frozen=True):
    """Everything that one unit contains."""

    sessions: tuple[ParsedSession, ...]
    title_hints: tuple[TitleHint, ...]
    links: tuple[SubagentLink, ...]
    problems: tuple[Problem, ...]
    counts: RecordCounts


class _OpenSession:
    """A session before its closing."""

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self.messages: dict[str, Message] = {}
        self.calls: dict[str, str] = {}  # tool call id: message id
        self.usage: dict[str, TokenUsage] = {}
        self.replaced: str | None = None  # the next message replaces the message with this id

    def add_message(self, message: Message) -> None:
        """Add a message. One with a known id replaces the earlier one."""
        early, self.replaced = self.replaced, None
        if early is not None and message.id not in self.messages:
            self.messages.pop(early, None)
        if message.usage is not None and message.response_id is not None:
            self.add_usage(message.response_id, message.usage)
        call = message.tool and message.tool.id
        if not call:
            self.messages[message.id] = message
            return
        known = self.messages.get(self.calls.get(call, ""))
        if known is not None and known.id != message.id and is_same_response(known, message):
            return
        if known is not None and known.kind == ORPHAN_RESULT and message.id not in self.messages:
            self._replace(known, merge_repeated_call(message, known))
        else:
            if known is not None and known.id == message.id:
                message = merge_repeated_call(message, known)
            self.messages[message.id] = message
        self.calls[call] = message.id

    def _replace(self, early: Message, message: Message) -> None:
        """Put a message in the position of one that came too early, such as the result of a call."""
        messages = [message if one is early else one for one in self.messages.values()]
        self.messages = {one.id: one for one in messages}

    def add_usage(self, response_id: str, usage: TokenUsage) -> None:
        known = self.usage.get(response_id)
        self.usage[response_id] = known.merged(usage) if known else usage

    def add_result(self, result: ToolResult) -> None:
        """Complete a tool call. A result may precede its call, which then takes its position."""
        message = self.messages.get(self.calls.get(result.tool_call_id, ""))
        if message is None or message.tool is None:
            self.add_message(message_for_orphan_result(result))
            return
        self.messages[message.id] = replace(
            message,
            tool=with_result(message.tool, result),
            attachments=tuple(dict.fromkeys(message.attachments + result.attachments)),
        )

    def close(self, closing: Closing) -> ParsedSession:
        abandoned = set(closing.abandoned)
        messages: list[Message] = []
        for message in self.messages.values():
            usage = message.usage
            if message.response_id is not None:
                usage = self.usage.pop(message.response_id, None)
            is_active = message.is_active and message.id not in abandoned
            if usage is not message.usage or is_active is not message.is_active:
                message = replace(message, usage=usage, is_active=is_active)
            messages.append(message)
        return ParsedSession(self.opening, closing, tuple(messages), self.usage)


def fold(items: Iterable[Item]) -> UnitContent:
    """Return whole sessions, with results joined to calls and usage on the first message of a response."""
    sessions: list[ParsedSession] = []
    title_hints: list[TitleHint] = []
    links: list[SubagentLink] = []
    problems: list[Problem] = []
    counts = RecordCounts()
    session: _OpenSession | None = None
    for item in items:
        match item:
            case Opening():
                session = _OpenSession(item)
            case Message() if session is not None:
                session.add_message(item)
            case ToolResult() if session is not None:
                session.add_result(item)
            case Replacement(early) if session is not None:
                session.replaced = early
            case UsageReport() if session is not None:
                session.add_usage(item.response_id, item.usage)
            case Closing() if session is not None:
                sessions.append(session.close(item))
                session = None
            case TitleHint():
                title_hints.append(item)
            case SubagentLink():
                links.append(item)
            case Problem():
                problems.append(item)
            case RecordCounts():
                counts = item
    return UnitContent(tuple(sessions), tuple(title_hints), tuple(links), tuple(problems), counts)
