"""Content blocks of an answer."""

from itertools import count
from typing import Any

Block = dict[str, Any]

_numbers = count(1)


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def think(words: str, signature: str = "c2lnbmF0dXJlLW1hZGUtdXA=") -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature}


def use(tool: str, /, id: str | None = None, **params: Any) -> Block:
    """Return a call of a tool, with a new id unless one is given."""
    return {
        "type": "tool_use",
        "id": id or f"toolu_judge_{next(_numbers):06d}",
        "name": tool,
        "input": params,
    }
