"""The turn and the prompt behind an edit."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

from backscroll.archive import Archive
from backscroll.commits.attribution import EditKey
from backscroll.commits.sessions import SessionWork
from backscroll.commits.turns import call_position
from backscroll.model import Message, SessionSummary
from backscroll.model.message import TYPED_KINDS

__all__ = ["EditPrompt", "find_prompts"]


class EditPrompt(Struct, frozen=True):
    """An edit in its session."""

    session_ref: str | None
    message_id: str | None  # of the edit; of the call that started the subagent, if a subagent made it
    first: int | None  # message of the turn
    last: int | None
    prompt: str | None  # the user's words
    prompt_id: str | None
    agent_ref: str | None  # the subagent


def find_prompts(
    archive: Archive, sessions: Sequence[SessionWork], edits: Iterable[EditKey]
) -> dict[EditKey, EditPrompt]:
    """Return the prompts of edits. Edits of sessions that were just erased are omitted."""
    by_session: defaultdict[int, set[EditKey]] = defaultdict(set)
    for edit in edits:
        by_session[edit.session].add(edit)
    summaries = archive.sessions.by_ids(sessions[number].number for number in by_session)
    found: dict[EditKey, EditPrompt] = {}
    for number, keys in by_session.items():
        summary = summaries.get(sessions[number].number)
        if summary is not None:
            found |= _SessionReader(archive, summary, sessions[number]).prompts(sorted(keys))
    return found


class _SessionReader:
    """Reads single messages of a session."""

    def __init__(self, archive: Archive, summary: SessionSummary, session: SessionWork) -> None:
        self._archive = archive
        self._summary = summary
        self._agents = {fragment.id: fragment.agent_id for fragment in session.fragments}
        single = archive.messages.single_fragment(summary)
        self._fragment_id = single[0] if single is not None else None

    def prompts(self, keys: Sequence[EditKey]) -> dict[EditKey, EditPrompt]:
        """Return the turns and prompts of edits."""
        edited = self._archive.messages.at_positions([(key.fragment_id, key.position) for key in keys])
        found: dict[EditKey, EditPrompt] = {}
        for key in keys:
            message = edited.get((key.fragment_id, key.position))
            position = self._position(key, message) if message is not None else None
            if message is not None and position is not None:
                found[key] = self._prompt(position, self._agents.get(key.fragment_id) or message.agent_id)
        return found

    def _prompt(self, position: int, agent_id: str | None) -> EditPrompt:
        starts = self._starts
        number = bisect_right(starts, position) - 1
        first = starts[number] if number >= 0 else 0
        last = (starts[number + 1] if number + 1 < len(starts) else self._count) - 1
        asked = self._typed(number)
        message = self._message(position)
        return EditPrompt(
            self._summary.ref,
            message.id,
            first,
            last,
            asked.content if asked is not None else None,
            asked.id if asked is not None else None,
            f"{self._summary.source}:{agent_id}" if agent_id is not None else None,
        )

    def _typed(self, number: int) -> Message | None:
        """Return the message that starts a turn, or the last one before it that the user typed."""
        first = self._message(self._starts[number]) if number >= 0 else None
        for earlier in range(number, -1, -1):
            message = self._message(self._starts[earlier])
            if message.kind in TYPED_KINDS and message.content.strip():
                return message
        return first

    def _position(self, key: EditKey, message: Message) -> int | None:
        """Return the position in the session of an edit, or of the call that started its subagent."""
        if key.fragment_id == self._fragment_id:
            return key.position
        agent_id = self._agents.get(key.fragment_id)
        if agent_id is not None:
            return call_position(self._calls.get(agent_id), message, self._messages)
        return self._positions.get(message.id)

    def _message(self, position: int) -> Message:
        if self._fragment_id is None:
            return self._messages[position]
        key = self._fragment_id, position
        return self._archive.messages.at_positions([key])[key]

    @cached_property
    def _messages(self) -> list[Message]:
        return list(self._archive.messages.without_usage(self._summary))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {message.id: position for position, message in enumerate(self._messages)}

    @cached_property
    def _calls(self) -> dict[str, str | None]:
        return {agent.id: call_id for agent, call_id in self._archive.sessions.subagents(self._summary)}

    @cached_property
    def _starts(self) -> list[int]:
        return self._archive.messages.turn_starts(self._summary, [*self._calls])

    @cached_property
    def _count(self) -> int:
        return self._archive.messages.extent(self._summary)[1]
