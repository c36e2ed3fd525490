"""Words in values of which nobody knows the form."""

from typing import Any

__all__ = ["text_in"]

_DEEPEST = 24
_LONGEST_WORD = 200  # characters; what is longer is data that nobody said

# Fields that hold no words, in the formats of all who write such values.
_WORDLESS = frozenset(
    {"type", "id", "tool_use_id", "toolCallId", "file_id", "signature", "data", "encrypted_content"}
    | {"encrypted_index", "mimeType", "media_type", "cache_control", "providerOptions"}
)


def text_in(value: Any, depth: int = 0) -> str:
    """Whatever words a value has, its data and ids left out."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_WORD or any(map(str.isspace, value)) else ""
    if depth > _DEEPEST or not isinstance(value, list | dict):
        return ""
    inner = value
    if isinstance(value, dict):
        inner = [one for name, one in value.items() if name not in _WORDLESS]
    return "\n".join(filter(None, (text_in(one, depth + 1) for one in inner)))
