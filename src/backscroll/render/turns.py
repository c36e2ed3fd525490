"""The messages of a session in reading order, with subagents after the call that started them.

Items are streamed, so the length of a session is not limited by memory.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from backscroll.model.message import Message
from backscroll.model.session import SessionSummary


class MessageItem(Struct, frozen=True):
    """A message."""

    position: int  # within its session or subagent, from 0
    turn: int  # from 1; 0 before the first prompt
    message: Message


class SubagentStart(Struct, frozen=True):
    """The start of a subagent. Items up to the matching `SubagentEnd` belong to it."""

    summary: SessionSummary
    is_placed: bool  # False if the call that started it is unknown


class SubagentEnd(Struct, frozen=True):
    """The end of a subagent."""

    summary: SessionSummary


TranscriptItem = MessageItem | SubagentStart | SubagentEnd


class Subagent(Struct, frozen=True):
    """A subagent and the call that started it, if known."""

    summary: SessionSummary
    tool_call_id: str | None


def is_visible(message: Message) -> bool:
    """Return whether a message is shown by default: on the active branch, not injected, not empty.

    The report of a subagent in the background is injected, but it is the only answer to its call.
    """
    if not message.is_active or (message.role == "system" and message.kind != "report"):
        return False
    return bool(message.content.strip() or message.tool is not None or message.attachments)


def transcript_items(
    summary: SessionSummary,
    subagents: Iterable[Subagent],
    read: Callable[[SessionSummary], Iterator[Message]],
    *,
    everything: bool = False,
    with_agents: bool = True,
    start: int = 0,
    turn: int = 0,
) -> Iterator[TranscriptItem]:
    """Yield the messages of a session, each subagent after its call, those without a known call at the end.

    `everything` includes abandoned branches and injected text. Without `with_agents`, only the start and end
    of each subagent are yielded. If `read` starts in the middle of a session, `start` is the position of its
    first message and `turn` the turn before it; then no subagents are added at the end.
    """
    agents = list(subagents)
    by_call: dict[str, list[Subagent]] = {}
    for agent in agents:
        if agent.tool_call_id is not None:
            by_call.setdefault(agent.tool_call_id, []).append(agent)
    known_ids = {agent.summary.id for agent in agents}
    walker = _Walker(read, by_call, known_ids, everything=everything, with_agents=with_agents)
    own_id = summary.id if summary.parent_ref is not None else None
    yield from walker.messages(summary, own_id=own_id, start=start, turn=turn)
    for agent in agents if not start else ():
        yield from walker.subagent(agent, is_placed=False)


class _Walker:
    def __init__(
        self,
        read: Callable[[SessionSummary], Iterator[Message]],
        by_call: Mapping[str, Sequence[Subagent]],
        known_ids: set[str],
        *,
        everything: bool,
        with_agents: bool,
    ) -> None:
        self.read = read
        self.by_call = by_call
        self.known_ids = known_ids
        self.everything = everything
        self.with_agents = with_agents
        self.done: set[str] = set()  # shown once, also if a damaged history repeats them

    def messages(
        self, summary: SessionSummary, own_id: str | None, *, start: int = 0, turn: int = 0
    ) -> Iterator[TranscriptItem]:
        for position, message in enumerate(self.read(summary), start=start):
            if message.agent_id in self.known_ids and message.agent_id != own_id:
                continue  # a subagent's message in its parent's file; shown with the subagent
            turn += message.role == "user" and message.is_active
            if not self.everything and not is_visible(message):
                continue
            yield MessageItem(position, turn, message)
            call_id = message.tool.id if message.tool is not None else None
            for agent in self.by_call.get(call_id, ()) if call_id is not None else ():
                yield from self.subagent(agent, is_placed=True)

    def subagent(self, agent: Subagent, *, is_placed: bool) -> Iterator[TranscriptItem]:
        if agent.summary.id in self.done:
            return
        self.done.add(agent.summary.id)
        yield SubagentStart(agent.summary, is_placed)
        if self.with_agents:
            yield from self.messages(agent.summary, own_id=agent.summary.id)
        yield SubagentEnd(agent.summary)
