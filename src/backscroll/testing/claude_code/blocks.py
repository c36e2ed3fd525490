"""The content blocks of a message, and how a record becomes a line."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["Block", "Record", "document", "encode", "image", "redacted", "text", "text_document", "thinking"]

Block = dict[str, Any]
Record = dict[str, Any]

_LONE = re.compile("[\ud800-\udfff]")


def encode(record: Mapping[str, Any]) -> bytes:
    """One record as ``JSON.stringify`` would write it, without the line's end.

    Half a surrogate pair becomes an escape, everything else stays UTF-8.
    """
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return _LONE.sub(lambda half: f"\\u{ord(half[0]):04x}", line).encode()


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def thinking(words: str, signature: str) -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature}


def redacted(data: str = "b3BhcXVl") -> Block:
    return {"type": "redacted_thinking", "data": data}


def image(data: bytes, media_type: str = "image/png") -> Block:
    return {"type": "image", "source": _base64(data, media_type)}


def document(data: bytes, media_type: str = "application/pdf") -> Block:
    return {"type": "document", "source": _base64(data, media_type)}


def text_document(words: str) -> Block:
    return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": words}}


def _base64(data: bytes, media_type: str) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
