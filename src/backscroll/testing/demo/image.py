"""Small pictures, made rather than taken."""

import struct
import zlib
from collections.abc import Sequence

__all__ = ["chart"]

_PAPER, _INK = b"\xf7\xf4\xec", b"\x2b\x5d\x7c"


def chart(values: Sequence[int], *, width: int, height: int) -> bytes:
    """A bar chart as PNG."""
    step = width // len(values)
    tallest = max(values)
    rows = []
    for y in range(height):
        row = b"".join(
            _INK if x % step > step // 4 and values[x // step] * height >= (height - y) * tallest else _PAPER
            for x in range(step * len(values))
        )
        rows.append(b"\0" + row)
    size = struct.pack(">IIBBBBB", step * len(values), height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", size), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
