"""Put a stream together into whole sessions, for those who want one in memory."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.message import Message, TokenUsage, ToolCall
from backscroll.model.problem import Problem
from backscroll.model.stream import (
    Closing,
    Item,
    Opening,
    RecordCounts,
    Replacement,
    SubagentLink,
    TitleHint,
    ToolResult,
    UsageReport,
)

__all__ = [
    "WITHOUT_CALL",
    "Reading",
    "Told",
    "answered",
    "fold",
    "is_same_response",
    "with_answer",
    "without_call",
]

WITHOUT_CALL = "answer without a call"


class Reading(Struct, frozen=True):
    """One session as one unit tells it."""

    opening: Opening
    closing: Closing
    messages: tuple[Message, ...]
    unsaid: dict[str, TokenUsage] = {}  # of responses that cost something and gave no message

    @property
    def usage(self) -> dict[str, TokenUsage]:
        """Tokens by response, each response once; a message of no response stands for itself."""
        return {m.response_id or m.id: m.usage for m in self.messages if m.usage is not None} | self.unsaid


class Told(Struct, frozen=True):
    """All that one unit tells."""

    readings: tuple[Reading, ...]
    namings: tuple[TitleHint, ...]
    links: tuple[SubagentLink, ...]
    problems: tuple[Problem, ...]
    tally: RecordCounts


class _Open:
    """A session while its messages are still coming in."""

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self.messages: dict[str, Message] = {}
        self.calls: dict[str, str] = {}
        self.usage: dict[str, TokenUsage] = {}
        self.arriving: str | None = None

    def say(self, message: Message) -> None:
        """Take a message; the same id said again replaces what was said before."""
        early, self.arriving = self.messages.get(self.arriving or ""), None
        if early is not None and message.id not in self.messages:
            self._put_instead(early, message)
            return
        if message.usage is not None and message.response_id is not None:
            self.spend(message.response_id, message.usage)
        call = message.tool and message.tool.id
        if not call:
            self.messages[message.id] = message
            return
        known = self.messages.get(self.calls.get(call, ""))
        if known is not None and known.id != message.id and is_same_response(known, message):
            return
        if known is not None and known.kind == WITHOUT_CALL and message.id not in self.messages:
            self._put_instead(known, with_answer(message, known))
        else:
            if known is not None and known.id == message.id:
                message = with_answer(message, known)
            self.messages[message.id] = message
        self.calls[call] = message.id

    def _put_instead(self, early: Message, message: Message) -> None:
        """Put a message into the place of one that came too early, such as the answer to a call."""
        said = [message if one is early else one for one in self.messages.values()]
        self.messages = {one.id: one for one in said}

    def spend(self, response_id: str, usage: TokenUsage) -> None:
        known = self.usage.get(response_id)
        self.usage[response_id] = known.merged(usage) if known else usage

    def answer(self, answer: ToolResult) -> None:
        """Complete a tool call. An answer may precede its call, which then takes its place."""
        message = self.messages.get(self.calls.get(answer.tool_call_id, ""))
        if message is None or message.tool is None:
            self.say(without_call(answer))
            return
        self.messages[message.id] = replace(
            message,
            tool=answered(message.tool, answer),
            attachments=tuple(dict.fromkeys(message.attachments + answer.attachments)),
        )

    def close(self, closing: Closing) -> Reading:
        abandoned = set(closing.abandoned)
        out: list[Message] = []
        for message in self.messages.values():
            share = message.usage
            if message.response_id is not None:
                share = self.usage.pop(message.response_id, None)
            active = message.is_active and message.id not in abandoned
            if share is not message.usage or active is not message.is_active:
                message = replace(message, usage=share, is_active=active)
            out.append(message)
        return Reading(self.opening, closing, tuple(out), self.usage)


def is_same_response(one: Message, other: Message) -> bool:
    """Whether a call that comes again is the same; some gateways give one id to calls of many responses."""
    return one.response_id is not None and one.response_id == other.response_id


def with_answer(again: Message, known: Message) -> Message:
    """A call that was written again, with the answer it had got by then."""
    if again.tool is None or known.tool is None or known.tool.result is None:
        return again
    had = known.tool
    tool = replace(again.tool, result=had.result, status=had.status, decision=had.decision, edits=had.edits)
    return replace(again, tool=tool, attachments=tuple(dict.fromkeys(again.attachments + known.attachments)))


def without_call(answer: ToolResult) -> Message:
    """An answer whose call is not written here, or not yet; its record may say something as well."""
    record, call = answer.record_id, answer.tool_call_id
    return Message(
        id=f"{record}.{call}" if record is not None else f"answer-{call}",
        role="tool",
        content="",
        origin=answer.origin,
        kind=WITHOUT_CALL,
        timestamp=answer.timestamp,
        timestamp_source="stored" if answer.timestamp else None,
        tool=answered(ToolCall(answer.tool_call_id, "unknown"), answer),
        attachments=answer.attachments,
    )


def answered(tool: ToolCall, answer: ToolResult) -> ToolCall:
    """A tool call with what came of it. A change that failed was none; one refused was still proposed."""
    proposed = tool.edits if answer.status == "completed" or answer.decision == "rejected" else ()
    return ToolCall(
        tool.id,
        tool.name,
        tool.params,
        answer.result,
        answer.status,
        answer.decision or tool.decision,
        answer.edits or proposed,
    )


def fold(items: Iterable[Item]) -> Told:
    """Whole sessions, with answers joined to their calls and each response's usage on its first message."""
    readings: list[Reading] = []
    namings: list[TitleHint] = []
    links: list[SubagentLink] = []
    problems: list[Problem] = []
    tally = RecordCounts()
    session: _Open | None = None
    for item in items:
        match item:
            case Opening():
                session = _Open(item)
            case Message() if session is not None:
                session.say(item)
            case ToolResult() if session is not None:
                session.answer(item)
            case Replacement(early) if session is not None:
                session.arriving = early
            case UsageReport() if session is not None:
                session.spend(item.response_id, item.usage)
            case Closing() if session is not None:
                readings.append(session.close(item))
                session = None
            case TitleHint():
                namings.append(item)
            case SubagentLink():
                links.append(item)
            case Problem():
                problems.append(item)
            case RecordCounts():
                tally = item
    return Told(tuple(readings), tuple(namings), tuple(links), tuple(problems), tally)
