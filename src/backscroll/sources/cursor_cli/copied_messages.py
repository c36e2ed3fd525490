"""Messages of a session that Backscroll has copied from another one. They count in the original only."""

from datetime import datetime

from msgspec.structs import replace

from backscroll.model import Item, Message, RecordCounts, record_id_of
from backscroll.readers import timestamps
from backscroll.sources.cursor_cli.metadata import COPY_KEY
from backscroll.sources.cursor_cli.session_header import SessionHeader, subagent_sessions
from backscroll.sources.cursor_graph.blobs import BlobLoader
from backscroll.sources.cursor_graph.state import ConversationState

__all__ = ["CopiedMessages"]


class CopiedMessages:
    """Marks the messages that the original had when the session was copied.

    These are the messages below the root at that time. If it cannot be read, the time decides.
    """

    def __init__(self, header: SessionHeader, blobs: BlobLoader) -> None:
        origin = header.meta.fields.get(COPY_KEY)
        self._original_id: str | None = None
        self._record_ids: set[str] | None = None
        self._copied_at: datetime | None = None
        if not isinstance(origin, dict) or not isinstance(origin.get("agentId"), str):
            return
        self._original_id = origin["agentId"]
        self._copied_at = timestamps.from_value(origin.get("at"))
        root_id = origin.get("rootBlobId")
        data = blobs.get(root_id.lower()) if isinstance(root_id, str) and root_id else None
        state = ConversationState(data) if data is not None else None
        if state is not None and state.fault is None and not state.is_empty:
            self._record_ids = set(_record_ids(header, state, blobs))

    def mark(self, item: Item) -> Item:
        """Return the item; a copied message with the session that it was copied from."""
        if self._original_id is None or not isinstance(item, Message) or not self._is_copied(item):
            return item
        return replace(item, copied_from=self._original_id)

    def _is_copied(self, message: Message) -> bool:
        if self._record_ids is not None:
            return record_id_of(message.id) in self._record_ids
        if self._copied_at is None or message.timestamp is None:
            return True
        return message.timestamp <= self._copied_at


def _record_ids(header: SessionHeader, state: ConversationState, blobs: BlobLoader) -> list[str]:
    """Return the ids of all records of a conversation and its nested subagents."""
    counts = RecordCounts()  # counted when the session itself is read
    conversations = [header.conversation(state, blobs, counts)]
    conversations += [child.conversation for child in subagent_sessions(header, state, blobs, counts)]
    return [
        record_id_of(item.id)
        for conversation in conversations
        for item in conversation.items()
        if isinstance(item, Message)
    ]
