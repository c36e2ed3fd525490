"""Messages as bytes: many together, compressed."""

import sys
from collections.abc import Sequence
from datetime import datetime
from functools import cache, lru_cache
from hashlib import blake2b
from struct import Struct

import msgspec

from backscroll.model import Message, is_universal, record_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = [
    "Piece",
    "compress",
    "decoded",
    "decompress",
    "encoded",
    "milliseconds",
    "number_of",
    "pack",
    "record_number",
    "unpack",
]

_LEVEL = 3
_QUICK = 1  # for messages, of which there are most: a third faster, for a twentieth more room
_SMALL = 64  # bytes that are not worth it
_MAGIC = b"\x28\xb5\x2f\xfd"  # what every compressed body begins with
_NUMBER = Struct(">q")
_DIGEST = blake2b(digest_size=_NUMBER.size)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Message])
_parts_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])
_message_decoder = msgspec.msgpack.Decoder(Message)


@cache
def _compressor(level: int) -> zstd.ZstdCompressor:
    """One for all: its tables cost more than a small body does."""
    return zstd.ZstdCompressor(level)


def compress(data: bytes, *, is_piece: bool = False) -> bytes:
    """Bytes in less room, a piece of messages quickly; a few stay as they are."""
    if len(data) < _SMALL and not data.startswith(_MAGIC):
        return data
    level = _QUICK if is_piece else _LEVEL
    return _compressor(level).compress(data, zstd.ZstdCompressor.FLUSH_FRAME)


def decompress(data: bytes) -> bytes:
    return zstd.decompress(data) if data.startswith(_MAGIC) else data


def encoded(messages: Sequence[Message]) -> bytes:
    """Messages that lie side by side, in one piece that is not yet compressed."""
    return _encoder.encode(messages)


def pack(messages: Sequence[Message]) -> bytes:
    """Messages that lie side by side, in one piece."""
    return compress(encoded(messages), is_piece=True)


def unpack(body: bytes) -> list[Message]:
    return decoded(decompress(body))


def decoded(plain: bytes) -> list[Message]:
    """The messages of a piece that is no longer compressed."""
    return _decoder.decode(plain)


class Piece:
    """Messages packed together, of which only those asked for are decoded."""

    def __init__(self, plain: bytes) -> None:
        self._parts = _parts_decoder.decode(plain)

    def __len__(self) -> int:
        return len(self._parts)

    def message(self, place: int) -> Message:
        return _message_decoder.decode(self._parts[place])

    def has(self, place: int, *some: bytes) -> bool:
        """Whether a message has all these bytes, as it is packed."""
        packed = bytes(self._parts[place])
        return all(one in packed for one in some)


def number_of(id_: str) -> int:
    """An id as a number, the same in every archive."""
    digest = _DIGEST.copy()  # takes a third less time than a new one, for every record and call
    digest.update(id_.encode("utf-8", "surrogatepass"))
    number: int = _NUMBER.unpack(digest.digest())[0]
    return number


@lru_cache(maxsize=1 << 12)  # a response is counted by the record that a message was from
def record_number(id_: str, session_id: str = "") -> int:
    """A message's record as a number: the same in every session that holds it, if it is the same anywhere."""
    record = record_of(id_)
    return number_of(record if is_universal(record) else f"{session_id} {record}")


def milliseconds(at: datetime | None) -> int | None:
    """A time as rows keep it."""
    return int(at.timestamp() * 1000) if at is not None else None
