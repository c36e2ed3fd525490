"""Cursor's blob graph: one model of a conversation, which the CLI and the IDE keep in different files."""

from backscroll.sources.cursor_graph.blobs import BlobLoader, blob_id
from backscroll.sources.cursor_graph.conversation import Conversation, RecordOutcome
from backscroll.sources.cursor_graph.state import ConversationState, MessageRef, NestedSubagent

__all__ = [
    "BlobLoader",
    "Conversation",
    "ConversationState",
    "MessageRef",
    "NestedSubagent",
    "RecordOutcome",
    "blob_id",
]
