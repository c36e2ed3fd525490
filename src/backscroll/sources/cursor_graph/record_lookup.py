"""The records behind a message, among the rows that Cursor's CLI and IDE keep."""

from backscroll.sources.record_ids import string_values

__all__ = ["result_call_ids", "row_keys"]


def row_keys(place: str) -> tuple[str, ...]:
    """Return the keys of the row at a place: of a blob its id, which the IDE prefixes."""
    kind, _, name = place.partition(" ")
    return (name, f"agentKv:blob:{name}") if kind == "blob" else (place, kind)


def result_call_ids(record: bytes) -> list[str]:
    """Return the ids of the tool calls that have their result in a blob."""
    return string_values(record, "toolCallId") if b'"tool-result"' in record else []
