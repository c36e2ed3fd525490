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

__all__ = ["Piece", "compress", "decompress", "pack", "record_number", "unpack"]

_LEVEL = 3
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Message])
_parts_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])
_message_decoder = msgspec.msgpack.Decoder(Message)


def compress(data: bytes) -> bytes:
    return zstd.compress(data, _LEVEL)


def decompress(data: bytes) -> bytes:
    return zstd.decompress(data)


def pack(messages: Sequence[Message]) -> bytes:
    """Messages that lie side by side, in one piece."""
    return compress(_encoder.encode(messages))


def unpack(body: bytes) -> list[Message]:
    return _decoder.decode(decompress(body))


class Piece:
    """Messages packed together, of which only those asked for are decoded."""

    def __init__(self, body: bytes) -> None:
        self._parts = _parts_decoder.decode(decompress(body))

    def __len__(self) -> int:
        return len(self._parts)

    def message(self, place: int) -> Message:
        return _message_decoder.decode(self._parts[place])


def record_number(id_: str, session_id: str = "") -> int:
    """A message's record as a number: the same in every session that holds it, if it is the same anywhere."""
    record = record_of(id_)
    name = record if is_universal(record) else f"{session_id} {record}"
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
