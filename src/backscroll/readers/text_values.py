"""Extract text from values of unknown structure."""

from typing import Any

__all__ = ["text_in"]

MAX_DEPTH = 24
MAX_WORD_CHARS = 200  # characters; longer strings without white space are data

# Fields without text.
_FIELDS_WITHOUT_TEXT = frozenset(
    {"type", "id", "tool_use_id", "toolCallId", "file_id", "signature", "data", "encrypted_content"}
    | {"encrypted_index", "mimeType", "media_type", "cache_control", "providerOptions"}
)


def text_in(value: Any, depth: int = 0) -> str:
    """Return all text in a value, without data and ids."""
    if isinstance(value, str):
        return value if len(value) <= MAX_WORD_CHARS or any(map(str.isspace, value)) else ""
    if depth > MAX_DEPTH or not isinstance(value, list | dict):
        return ""
    inner = value
    if isinstance(value, dict):
        inner = [item for name, item in value.items() if name not in _FIELDS_WITHOUT_TEXT]
    return "\n".join(filter(None, (text_in(item, depth + 1) for item in inner)))
