"""Content blocks: their words as text, their images and documents as attachments."""

from collections.abc import Iterable
from typing import Any

from msgspec.json import encode

from backscroll.model import Attachment
from backscroll.sources.claude_code.lines import Block, ImageData, text

__all__ = ["attachment", "blocks_of", "result_text"]


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


def result_text(content: Any) -> tuple[str, tuple[Attachment, ...]]:
    """A tool result as a person would read it, and what came along with it."""
    if isinstance(content, str):
        return content, ()
    found = blocks_of(content)
    attachments = tuple(a for block in found if (a := attachment(block)) is not None)
    return "\n".join(_words(found)), attachments


def _words(blocks: Iterable[Block]) -> Iterable[str]:
    for block in blocks:
        if isinstance(block.text, str):
            yield block.text
        elif block.type in ("image", "document"):
            source = block.source
            if isinstance(source, ImageData) and source.type == "text" and len(source.data) > 2:
                yield f"[{block.type}]"
        elif block.type == "tool_reference":
            yield f"[tool {text(block.tool_name) or '?'}]"
        elif block.content is not None:
            yield result_text(block.content)[0]
        elif isinstance(block.title, str):
            yield block.title
