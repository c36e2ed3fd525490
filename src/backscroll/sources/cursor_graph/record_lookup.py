"""Find the stored record of a message, among the rows of Cursor's CLI and IDE."""

from backscroll.sources.record_ids import string_values

__all__ = ["result_call_ids", "row_keys"]


def row_keys(place: str) -> tuple[str, ...]:
    """Return the possible keys of the row at an origin's place. For a blob: its id, and the IDE's key."""
    kind, _, name = place.partition(" ")
    return (name, f"agentKv:blob:{name}") if kind == "blob" else (place, kind)


def result_call_ids(record: bytes) -> list[str]:
    """Return the ids of the tool calls that have their result in a blob."""
    return string_values(record, "toolCallId") if b'"tool-result"' in record else []
