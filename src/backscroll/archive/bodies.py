"""Messages as bytes: many together, compressed."""

import sys
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from backscroll.model import Message, is_universal, record_of

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


def record_number(id_: str, session_id: str = "") -> int:
    """A message's record as a number: the same in every session that holds it, if it is the same anywhere."""
    record = record_of(id_)
    name = record if is_universal(record) else f"{session_id} {record}"
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
