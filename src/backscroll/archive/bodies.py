"""Messages as bytes: many together, compressed."""

import sys
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from backscroll.model import Message

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["compress", "decompress", "pack", "record_number", "unpack"]

_LEVEL = 3
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Message])


def compress(data: bytes) -> bytes:
    return zstd.compress(data, _LEVEL)


def decompress(data: bytes) -> bytes:
    return zstd.decompress(data)


def pack(messages: Sequence[Message]) -> bytes:
    """Messages that lie side by side, in one piece."""
    return compress(_encoder.encode(messages))


def unpack(body: bytes) -> list[Message]:
    return _decoder.decode(decompress(body))


def record_number(id_: str) -> int:
    """A message's record as a number: its id without the part that counts messages of one record."""
    digest = blake2b(id_.partition(".")[0].encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
