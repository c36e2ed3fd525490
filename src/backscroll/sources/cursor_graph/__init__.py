"""Cursor's blob graph: one model of a conversation, which the CLI and the IDE keep in different files."""

from backscroll.sources.cursor_graph.blobs import Blobs, blob_id
from backscroll.sources.cursor_graph.conversation import Conversation, Verdict
from backscroll.sources.cursor_graph.state import Entry, Nested, State

__all__ = ["Blobs", "Conversation", "Entry", "Nested", "State", "Verdict", "blob_id"]
