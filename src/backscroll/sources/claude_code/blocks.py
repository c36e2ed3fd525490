"""Content blocks: their words as text, their images and documents as attachments."""

from typing import Any

from msgspec.json import encode

from backscroll.model import Attachment
from backscroll.sources.claude_code.lines import Block, ImageData, text

__all__ = ["attachment", "blocks_of", "odd_result_text", "result_text"]


def blocks_of(content: Any) -> list[Block]:
    """Content in any of its forms as a list of blocks; a bare string is a text block."""
    match content:
        case str():
            return [Block(type="text", text=content)]
        case list():
            return [
                item if isinstance(item, Block) else Block(type="text", text=_plain(item)) for item in content
            ]
        case Block():
            return [content]
        case None:
            return []
    return [Block(type="text", text=_plain(content))]


def _block(item: Any) -> Block:
    return item if isinstance(item, Block) else Block(type="text", text=_plain(item))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def attachment(block: Block) -> Attachment | None:
    """An image or document block as what came along: its type and size."""
    if block.type not in ("image", "document"):
        return None
    source = block.source
    if not isinstance(source, ImageData):
        return Attachment(block.type, name=text(block.title))
    encoded = max(len(source.data) - 2, 0)  # without its quotes
    size = encoded * 3 // 4 if source.type == "base64" else encoded
    return Attachment(
        block.type,
        name=text(block.title),
        media_type=text(source.media_type),
        size=size or None,
        path=text(source.url),
    )


def result_text(content: Any) -> tuple[str, tuple[Attachment, ...]] | None:
    """A tool result as a person would read it, and what came along; None for a form not known here."""
    if isinstance(content, str):
        return content, ()
    words: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks_of(content):
        if isinstance(block.text, str):
            words.append(block.text)
        elif (found := attachment(block)) is not None:
            attachments.append(found)
        elif block.type == "tool_reference":
            words.append(f"[tool {text(block.tool_name) or '?'}]")
        else:
            return None
    return "\n".join(words), tuple(attachments)


def odd_result_text(content: Any) -> str:
    """A tool result in a form nobody described: its texts where it has some, else as it stands."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(odd_result_text(item) for item in content if item is not None)
    if not isinstance(content, dict):
        return "" if content is None else _plain(content)
    for name in ("text", "content", "resource"):
        inner = content.get(name)
        if inner and (isinstance(inner, str) or name != "text"):
            return odd_result_text(inner)
    if content.get("type") in ("image", "document"):
        return ""
    return encode(content).decode()
