"""A session in the order it is read: turns, and subagents where they were started.

Everything comes as a stream, so that a session of any length passes through.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from backscroll.model import Message, SessionSummary

__all__ = [
    "MessageItem",
    "Subagent",
    "SubagentEnd",
    "SubagentStart",
    "TranscriptItem",
    "is_visible",
    "transcript_items",
]


class MessageItem(Struct, frozen=True):
    """A message."""

    position: int  # in the session or subagent that it belongs to, from 0
    turn: int  # from 1; 0 before the first prompt
    message: Message


class SubagentStart(Struct, frozen=True):
    """A subagent begins; all until it has ended is its own."""

    summary: SessionSummary
    is_placed: bool  # False when nobody knows which call started it


class SubagentEnd(Struct, frozen=True):
    """It has ended."""

    summary: SessionSummary


TranscriptItem = MessageItem | SubagentStart | SubagentEnd


class Subagent(Struct, frozen=True):
    """A subagent, and the call that started it when that is known."""

    summary: SessionSummary
    tool_call_id: str | None


def is_visible(message: Message) -> bool:
    """Whether people see it unasked: on the branch the tool shows, not injected, not without words."""
    if not message.is_active or message.role == "system":
        return False
    return bool(message.content.strip() or message.tool is not None or message.attachments)


def transcript_items(
    summary: SessionSummary,
    started: Iterable[Subagent],
    read: Callable[[SessionSummary], Iterator[Message]],
    *,
    everything: bool = False,
    with_agents: bool = True,
    start: int = 0,
    turn: int = 0,
) -> Iterator[TranscriptItem]:
    """A session's messages, each subagent after the call that started it, the unplaced ones at the end.

    ``everything`` tells abandoned branches and injected text as well; without ``with_agents`` a subagent
    begins and has ended. When ``read`` gives a session from a position on, ``start`` is that position and
    ``turn`` the turn before it; then nothing comes at the end.
    """
    agents = list(started)
    by_call: dict[str, list[Subagent]] = {}
    for agent in agents:
        if agent.tool_call_id is not None:
            by_call.setdefault(agent.tool_call_id, []).append(agent)
    known = {agent.summary.id for agent in agents}
    teller = _Teller(read, by_call, known, everything=everything, with_agents=with_agents)
    own = summary.id if summary.parent_ref is not None else None
    yield from teller.tell(summary, own=own, start=start, turn=turn)
    for agent in agents if not start else ():
        yield from teller.nest(agent, is_placed=False)


class _Teller:
    def __init__(
        self,
        read: Callable[[SessionSummary], Iterator[Message]],
        by_call: Mapping[str, Sequence[Subagent]],
        known: set[str],
        *,
        everything: bool,
        with_agents: bool,
    ) -> None:
        self.read = read
        self.by_call = by_call
        self.known = known
        self.everything = everything
        self.with_agents = with_agents
        self.done: set[str] = set()  # nobody is told twice, whatever a damaged history claims

    def tell(
        self, summary: SessionSummary, own: str | None, *, start: int = 0, turn: int = 0
    ) -> Iterator[TranscriptItem]:
        for position, message in enumerate(self.read(summary), start=start):
            if message.agent_id in self.known and message.agent_id != own:
                continue  # written into its parent's file; it has a place of its own
            turn += message.role == "user" and message.is_active
            if not self.everything and not is_visible(message):
                continue
            yield MessageItem(position, turn, message)
            call = message.tool.id if message.tool is not None else None
            for agent in self.by_call.get(call, ()) if call is not None else ():
                yield from self.nest(agent, is_placed=True)

    def nest(self, agent: Subagent, *, is_placed: bool) -> Iterator[TranscriptItem]:
        if agent.summary.id in self.done:
            return
        self.done.add(agent.summary.id)
        yield SubagentStart(agent.summary, is_placed)
        if self.with_agents:
            yield from self.tell(agent.summary, own=agent.summary.id)
        yield SubagentEnd(agent.summary)
