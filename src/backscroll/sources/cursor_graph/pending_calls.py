"""Which calls a session has made, and which of them still wait for an answer."""

from typing import Any

from msgspec import Struct

from backscroll.model import Edit

__all__ = ["CallTracker", "PendingCall", "call_id"]


class PendingCall(Struct, frozen=True):
    """A call that waits for its answer."""

    id: str  # unlike any other call's of the session
    record: str  # the record that made it
    edits: tuple[Edit, ...] = ()  # what it does to files if it succeeds


class CallTracker:
    """The calls of one session by the ids that its records use.

    Some models number their calls anew in every turn, others give one id to
    several calls of one message: an answer belongs to the first call of its id
    that waits, and calls of an earlier message no longer wait once a later one
    uses their id. `are_answered` is false for records that leave out what came
    of their calls.
    """

    def __init__(self, *, are_answered: bool = True) -> None:
        self.are_answered = are_answered
        self._uses: dict[str, int] = {}
        self._waiting: dict[str, list[PendingCall]] = {}
        self._answers: dict[str, int] = {}

    def __contains__(self, id: object) -> bool:
        return id in self._uses

    def make(self, id: str | None, record: str, edits: tuple[Edit, ...] = ()) -> str | None:
        """The id of a new call, made different from an earlier one's; None when it has none."""
        if id is None:
            return None
        self._uses[id] = self._uses.get(id, 0) + 1
        name = id if self._uses[id] == 1 else f"{id}#{self._uses[id]}"
        waiting = [call for call in self._waiting.get(id, ()) if call.record == record]
        self._waiting[id] = [*waiting, PendingCall(name, record, edits)]
        return name

    def answer(self, id: str | None, text: str) -> PendingCall | None:
        """The call that this is the answer to; it waits no longer. None when no call waits for it."""
        waiting = self._waiting.get(id or "")
        if not waiting:
            return None
        self._answers[id or ""] = hash(text)
        return waiting.pop(0)

    def is_repeated(self, id: str | None, text: str) -> bool:
        """Whether the last answer to calls of this id said just the same."""
        return id is not None and self._answers.get(id) == hash(text)


def call_id(part: dict[str, Any]) -> str | None:
    """The id that a part's record gives a call, in whichever of its spellings."""
    for key in ("toolCallId", "tool_call_id", "tool_use_id", "id"):
        value = part.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value:
            return value
    return None
