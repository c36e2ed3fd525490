"""Convert content blocks to text and attachments."""

from typing import Any

from msgspec.json import encode

from backscroll.model import Attachment
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.transcript.line_structs import Block, ImageData, as_text

__all__ = ["blocks_of", "fallback_result_text", "result_text", "to_attachment"]

MAX_DEPTH = 24  # nested levels of a result in an unknown form


def blocks_of(content: Any) -> list[Block]:
    """Return content in any form as a list of blocks. A string is a text block."""
    match content:
        case str():
            return [Block(type="text", text=content)]
        case list():
            return [
                item if isinstance(item, Block) else Block(type="text", text=_as_string(item))
                for item in content
                if item is not None
            ]
        case Block():
            return [content]
        case None:
            return []
    return [Block(type="text", text=_as_string(content))]


def _as_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return encode(value).decode()
    except lenient_json.FAILURES:
        return "[nested too deeply]"


def to_attachment(block: Block) -> Attachment | None:
    """Return the type and size of an image or document block as an attachment."""
    if block.type not in ("image", "document"):
        return None
    source = block.source
    if not isinstance(source, ImageData):
        return Attachment(block.type, name=as_text(block.title))
    encoded = max(len(source.data) - 2, 0)  # without quotes
    size = encoded * 3 // 4 if source.type == "base64" else encoded
    return Attachment(
        block.type,
        name=as_text(block.title),
        media_type=as_text(source.media_type),
        size=size or None,
        path=as_text(source.url),
    )


def result_text(content: Any) -> tuple[str, tuple[Attachment, ...]] | None:
    """Return the text and the attachments of a tool result; None if its form is unknown."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks_of(content):
        if isinstance(block.text, str):
            texts.append(block.text)
        elif (found := to_attachment(block)) is not None:
            attachments.append(found)
        elif block.type == "tool_reference":
            texts.append(f"[tool {as_text(block.tool_name) or '?'}]")
        else:
            return None
    return "\n".join(texts), tuple(attachments)


def fallback_result_text(content: Any, depth: int = 0) -> str:
    """Return the texts of a tool result in an unknown form, else its JSON."""
    if content is None:
        return ""
    if depth > MAX_DEPTH or not isinstance(content, list | dict):
        return _as_string(content)
    if isinstance(content, list):
        return "\n".join(fallback_result_text(item, depth + 1) for item in content if item is not None)
    for name in ("text", "content", "resource"):
        inner = content.get(name)
        if inner and (isinstance(inner, str) or name != "text"):
            return fallback_result_text(inner, depth + 1)
    if content.get("type") in ("image", "document"):
        return ""
    found = [as_text(content.get(name)) for name in ("title", "url", "error_code")]  # a search result
    return "\n".join(filter(None, found)) or _as_string(content)
