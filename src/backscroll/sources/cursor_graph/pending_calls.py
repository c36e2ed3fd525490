"""Tool calls of a session, and which of them have no result yet."""

from typing import Any

from msgspec import Struct

from backscroll.model import Edit

__all__ = ["CallTracker", "PendingCall", "call_id"]


class PendingCall(Struct, frozen=True):
    """A tool call without a result."""

    id: str  # unique in the session
    record_id: str  # the record that contains the call
    edits: tuple[Edit, ...] = ()  # if the call succeeds


class CallTracker:
    """The tool calls of one session, by the ids that its records use.

    Ids are not unique: some models restart numbering in every turn, others use one id for several calls of a
    message. A result belongs to the first pending call with its id. If a later record uses the id of a
    pending call, that call is no longer pending.

    `has_results` is false for records that do not contain the results of their calls.
    """

    def __init__(self, *, has_results: bool = True) -> None:
        self.has_results = has_results
        self._use_counts: dict[str, int] = {}
        self._pending: dict[str, list[PendingCall]] = {}
        self._last_results: dict[str, int] = {}  # hash of the last result by call id

    def __contains__(self, id: object) -> bool:
        return id in self._use_counts

    def add_call(self, id: str | None, record_id: str, edits: tuple[Edit, ...] = ()) -> str | None:
        """Add a call. Return its id, numbered if an earlier call has the same; None if it has no id."""
        if id is None:
            return None
        self._use_counts[id] = self._use_counts.get(id, 0) + 1
        unique_id = id if self._use_counts[id] == 1 else f"{id}#{self._use_counts[id]}"
        same_record = [call for call in self._pending.get(id, ()) if call.record_id == record_id]
        self._pending[id] = [*same_record, PendingCall(unique_id, record_id, edits)]
        return unique_id

    def add_result(self, id: str | None, text: str) -> PendingCall | None:
        """Add a result. Return its call, which is no longer pending; None if no such call is pending."""
        pending = self._pending.get(id or "")
        if not pending:
            return None
        self._last_results[id or ""] = hash(text)
        return pending.pop(0)

    def is_repeated_result(self, id: str | None, text: str) -> bool:
        """Return whether the last result with this id had the same text."""
        return id is not None and self._last_results.get(id) == hash(text)


def call_id(part: dict[str, Any]) -> str | None:
    """Return the call id of a part, under any of its known keys."""
    for key in ("toolCallId", "tool_call_id", "tool_use_id", "id"):
        value = part.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value:
            return value
    return None
