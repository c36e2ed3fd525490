"""Cursor's conversation graph: a root record, and blobs that it refers to by their SHA-256.

The CLI and the IDE store the same graph in different files.

conversation   Conversation: its messages and their times, also of messages that compactions removed
records        ConversationState: the fields of the root; turns and their steps
blobs          BlobLoader: load blobs in batches; find all blobs that a root refers to
message_parts  split a stored message into prompt, texts, thinking and tool calls
tool_calls     arguments, results and file edits of tool calls; join calls and results

The functions below find the stored record of a message, among the rows of both tools.
"""

from backscroll.sources.protocols import string_values


def row_keys(place: str) -> tuple[str, ...]:
    """Return the possible keys of the row at an origin's place. For a blob: its id, and the IDE's key."""
    kind, _, name = place.partition(" ")
    return (name, f"agentKv:blob:{name}") if kind == "blob" else (place, kind)


def result_call_ids(record: bytes) -> list[str]:
    """Return the ids of the tool calls that have their result in a blob."""
    return string_values(record, "toolCallId") if b'"tool-result"' in record else []
