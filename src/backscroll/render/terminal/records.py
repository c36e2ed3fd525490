"""The original records that messages were read from."""

from base64 import b64encode
from collections.abc import Iterator

import msgspec

from backscroll.model import Message
from backscroll.model.text import escape_json, one_line, sanitize
from backscroll.render.terminal.options import MAX_PLAIN_LINE_CHARS, TranscriptOptions

__all__ = ["record_lines"]


def record_lines(record: bytes, message: Message, position: int, options: TranscriptOptions) -> Iterator[str]:
    """Yield a record: for a terminal indented below its origin, else on one line without anything else.

    Unsafe characters are escaped, so the JSON stays equivalent.
    """
    is_terminal = options.width is not None
    if is_terminal:
        origin = one_line(f"{message.origin.path} · {message.origin.place}", MAX_PLAIN_LINE_CHARS)
        yield ""
        yield options.style("dim", f"── {message.role} · #{position} · {origin}")
    try:
        formatted = msgspec.json.format(record, indent=2 if is_terminal else -1)
        yield from escape_json(formatted).decode().split("\n")
        return
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        yield from sanitize(record.decode()).split("\n")
    except UnicodeDecodeError:
        yield b64encode(record).decode()
