"""The records that messages were read from, as the tool wrote them."""

from base64 import b64encode
from collections.abc import Iterator

import msgspec

from backscroll.model import Message
from backscroll.model.sanitize import escape_json, one_line, sanitize
from backscroll.render.terminal.options import MAX_PLAIN_LINE_CHARS, TranscriptOptions

__all__ = ["record_lines"]


def record_lines(record: bytes, message: Message, position: int, view: TranscriptOptions) -> Iterator[str]:
    """In a terminal the record laid out below its place; elsewhere the record in one line and nothing else.

    Marks that a terminal could obey are spelled out, which JSON reads as the same.
    """
    is_terminal = view.width is not None
    if is_terminal:
        origin = one_line(f"{message.origin.path} · {message.origin.place}", MAX_PLAIN_LINE_CHARS)
        yield ""
        yield view.style("dim", f"── {message.role} · #{position} · {origin}")
    try:
        laid_out = msgspec.json.format(record, indent=2 if is_terminal else -1)
        yield from escape_json(laid_out).decode().split("\n")
        return
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        yield from sanitize(record.decode()).split("\n")
    except UnicodeDecodeError:
        yield b64encode(record).decode()
