"""A session as it is read: turn by turn, from anywhere in it, with the subagents where they were started."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from backscroll.errors import UsageError
from backscroll.history.sessions import Sessions

if TYPE_CHECKING:
    from backscroll.archive.query.original_records import OriginalRecords
    from backscroll.model import Message, SessionSummary
    from backscroll.render.turns import TranscriptItem

__all__ = ["Reading"]

_CANDIDATES = 10  # messages that are named when it is not clear which is meant


class Reading(Sessions):
    """A session as it is read: turn by turn, from anywhere in it."""

    def messages_of(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """The messages of a session from a position on, one by one, so that it is never whole in memory."""
        return self._archive.messages.of_session(summary, start)

    def extent(self, summary: SessionSummary) -> int:
        """How many messages a session has, of all roles and on all branches: its positions end before it."""
        return self._archive.messages.extent(summary)[1]

    def read_session(
        self,
        summary: SessionSummary,
        *,
        everything: bool = False,
        with_agents: bool = True,
        start: int = 0,
        turns: tuple[int, int] | None = None,
    ) -> Iterator[TranscriptItem]:
        """A session in the order it is read, each subagent after the call that started it.

        ``everything`` tells abandoned branches and injected text as well; without ``with_agents`` a subagent
        begins and has ended. It begins at a position, or with the first of the ``turns`` and ends with the
        last: they count from 1, from the end when they are negative, and 0 is what stands before the first
        prompt. What is before the beginning is not read. Raises `UsageError` when there is no such turn.
        """
        from backscroll.render.turns import Subagent, transcript_items

        started = [Subagent(agent, call) for agent, call in self._archive.sessions.subagents(summary)]
        prompts: list[int] = []
        last = None
        if start or turns is not None:
            prompts = self._archive.messages.turn_starts(summary, [one.summary.id for one in started])
        if turns is not None:
            first, last = _counted(turns, len(prompts))
            start = prompts[first - 1] if first else 0

        def read(one: SessionSummary) -> Iterator[Message]:
            return self._archive.messages.without_usage(one, start if one is summary else 0)

        events = transcript_items(
            summary,
            started,
            read,
            everything=everything,
            with_agents=with_agents,
            start=start,
            turn=bisect_left(prompts, start),
        )
        return events if last is None else _until(events, last)

    def message_at(self, summary: SessionSummary, position: int) -> Message | None:
        """One message, without what it cost; None behind the last one."""
        return next(self._archive.messages.without_usage(summary, position), None)

    def find_message(self, summary: SessionSummary, name: str) -> int:
        """The position of a message: its position as digits (``7``, ``#7``), its id, or a beginning of that.

        Raises `UsageError` when the session has no such message, or several.
        """
        name = name.removeprefix("#")
        if name.isascii() and name.isdigit() and len(name) < 8:
            _, number = self._archive.messages.extent(summary)
            if int(name) < number:
                return int(name)
            raise UsageError(f"{summary.ref} has no message {name}; the last one is {number - 1}")
        found = self._archive.messages.find_positions(summary, name) if name else []
        if not found:
            raise UsageError(f"{summary.ref} has no message called {name!r}; show --json has the ids of all")
        if len({id_.partition(".")[0] for _, id_ in found}) > 1:
            named = "\n".join(f"  {position}  {id_}" for position, id_ in found[:_CANDIDATES])
            more = f"\n  and {len(found) - _CANDIDATES:,} more" if len(found) > _CANDIDATES else ""
            raise UsageError(f"{name!r} may be any of these messages; write more of it:\n{named}{more}")
        return found[0][0]

    def records_of(self, summary: SessionSummary) -> OriginalRecords:
        """Finds the original line or row of each message of a session, where it is kept."""
        return self._archive.messages.original_records(summary)

    def live_sessions(self) -> set[tuple[str, str]]:
        """The sessions that are being held, by platform and id."""
        return self._archive.sessions.live()


def _counted(turns: tuple[int, int], number: int) -> tuple[int, int]:
    """The same turns counted from the beginning; the last so many are all when there are not so many."""
    first, last = (turn + number + 1 if turn < 0 else turn for turn in turns)
    if turns[0] < 0 and turns[1] != turns[0]:
        first = max(first, 1)
    if (turns[0] < 0 and first < 1) or first > min(last, number):
        has = "one turn" if number == 1 else f"{number:,} turns"
        asked = str(turns[0]) if turns[0] == turns[1] else f"{turns[0]} to {turns[1]}"
        raise UsageError(f"there is no turn {asked}: the session has {has}")
    return first, last


def _until(events: Iterable[TranscriptItem], last: int) -> Iterator[TranscriptItem]:
    """The events up to the end of a turn."""
    from backscroll.render.turns import SubagentEnd, SubagentStart

    depth = 0
    for event in events:
        match event:
            case SubagentStart():
                depth += 1
            case SubagentEnd():
                depth -= 1
            case _ if not depth and event.turn > last:
                return
        yield event
