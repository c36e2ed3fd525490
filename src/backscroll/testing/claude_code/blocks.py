"""Content blocks of a message, and the encoding of a record as a line."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

Block = dict[str, Any]
Record = dict[str, Any]

_SURROGATE = re.compile("[\ud800-\udfff]")


def encode(record: Mapping[str, Any]) -> bytes:
    """Encode a record as ``JSON.stringify`` does, without a newline.

    A lone surrogate becomes an escape. All other characters are UTF-8.
    """
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", line).encode()


def text(content: str) -> Block:
    return {"type": "text", "text": content}


def thinking(content: str, signature: str) -> Block:
    return {"type": "thinking", "thinking": content, "signature": signature}


def redacted(data: str = "b3BhcXVl") -> Block:
    return {"type": "redacted_thinking", "data": data}


def image(data: bytes, media_type: str = "image/png") -> Block:
    return {"type": "image", "source": _base64(data, media_type)}


def document(data: bytes, media_type: str = "application/pdf") -> Block:
    return {"type": "document", "source": _base64(data, media_type)}


def text_document(content: str) -> Block:
    return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": content}}


def _base64(data: bytes, media_type: str) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
