"""Messages as bytes: many together, compressed."""

import sys
from collections.abc import Sequence
from datetime import datetime
from functools import cache, lru_cache
from itertools import accumulate
from struct import Struct
from typing import TYPE_CHECKING, Final

import msgspec

from backscroll.archive.storage.seekable import (
    ZSTD_MAGIC,
    SeekTable,
    append_seek_table,
    frame_boundaries,
    read_seek_table,
)
from backscroll.model import Message, is_uuid, record_id_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from hashlib import blake2b

__all__ = [
    "Chunk",
    "compress",
    "decode_chunk",
    "decode_messages",
    "decompress",
    "encode_chunk",
    "encode_messages",
    "frame_as_list",
    "hash64",
    "hash_record",
    "lacks_seek_table",
    "recompress_chunk",
    "to_milliseconds",
]

_LEVEL = 3
_QUICK = 1  # for messages, of which there are most: a third faster, for a twentieth more room
_FRAME: Final = zstd.ZstdCompressor.FLUSH_FRAME
_SMALL = 64  # bytes that are not worth it
_NUMBER = Struct(">q")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Message])
_parts_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])
_message_decoder = msgspec.msgpack.Decoder(Message)


@cache
def _compressor(level: int) -> zstd.ZstdCompressor:
    """One for all: its tables cost more than a small body does."""
    return zstd.ZstdCompressor(level)


def compress(data: bytes) -> bytes:
    """Bytes in less room; a few stay as they are."""
    if _is_small(data):
        return data
    return _compressor(_LEVEL).compress(data, _FRAME)


def _is_small(data: bytes) -> bool:
    return len(data) < _SMALL and not data.startswith(ZSTD_MAGIC)


def decompress(data: bytes) -> bytes:
    return zstd.decompress(data) if data.startswith(ZSTD_MAGIC) else data


def encode_chunk(messages: Sequence[Message]) -> bytes:
    """Messages that lie side by side, in one piece."""
    return encode_messages(messages)[1]


def encode_messages(messages: Sequence[Message]) -> tuple[bytes, bytes]:
    """Messages that lie side by side, in one piece: as a list of them, and that list compressed."""
    buffer = bytearray(_header(len(messages)))
    ends = []
    for message in messages:
        _encoder.encode_into(message, buffer, -1)
        ends.append(len(buffer))
    plain = bytes(buffer)
    del buffer  # before more is needed: a message may be very long
    return plain, _framed(plain, ends)


def recompress_chunk(plain: bytes) -> bytes:
    """A piece that is no longer compressed, as it would be if it were packed now."""
    sizes = [len(bytes(part)) for part in _parts_decoder.decode(plain)]
    ends = accumulate(sizes, initial=len(_header(len(sizes))))
    return _framed(plain, list(ends)[1:])


def _framed(plain: bytes, ends: Sequence[int]) -> bytes:
    """A piece whose messages end there, compressed."""
    if _is_small(plain):
        return plain
    view = memoryview(plain)
    compress = _compressor(_QUICK).compress
    ranges = list(frame_boundaries(ends))
    frames = [
        compress(view[ends[begin - 1] if begin else 0 : ends[end - 1]], _FRAME) for begin, end in ranges
    ]
    return append_seek_table(frames, [end - begin for begin, end in ranges])


@lru_cache(maxsize=1 << 8)
def _header(count: int) -> bytes:
    """What a list of so many messages begins with."""
    return _encoder.encode([None] * count)[: -count or None]


def decode_chunk(body: bytes) -> list[Message]:
    return decode_messages(decompress(body))


def decode_messages(plain: bytes) -> list[Message]:
    """The messages of a piece that is no longer compressed."""
    return _decoder.decode(plain)


def lacks_seek_table(body: bytes) -> bool:
    """Whether a body has several frames, and no table says any more where they are."""
    if not body.startswith(ZSTD_MAGIC) or read_seek_table(body) is not None:
        return False
    first = zstd.ZstdDecompressor()
    first.decompress(body)
    return bool(first.unused_data)


def frame_as_list(plain: bytes, frames: SeekTable, number: int) -> bytes:
    """The messages of one frame that is no longer compressed, as a list of their own."""
    begin = _header(frames.first_positions[-1]) if not number else b""
    if not plain.startswith(begin):
        raise msgspec.DecodeError("another number of messages than the table has")
    return _header(frames.first_positions[number + 1] - frames.first_positions[number]) + plain[len(begin) :]


class Chunk:
    """Messages packed together, of which only those asked for are decoded."""

    def __init__(self, plain: bytes) -> None:
        self._parts = _parts_decoder.decode(plain)

    def __len__(self) -> int:
        return len(self._parts)

    def message(self, place: int) -> Message:
        return _message_decoder.decode(self._parts[place])

    def contains(self, place: int, *some: bytes) -> bool:
        """Whether a message has all these bytes, as it is packed."""
        encode_messages = bytes(self._parts[place])
        return all(one in encode_messages for one in some)


@cache
def _empty_digest() -> "blake2b":
    from hashlib import blake2b  # loads OpenSSL, which nobody needs who only searches

    return blake2b(digest_size=_NUMBER.size)


def hash64(id_: str) -> int:
    """An id as a number, the same in every archive."""
    digest = _empty_digest().copy()  # takes a third less time than a new one, for every record and call
    digest.update(id_.encode("utf-8", "surrogatepass"))
    number: int = _NUMBER.unpack(digest.digest())[0]
    return number


@lru_cache(maxsize=1 << 12)  # a response is counted by the record that a message was from
def hash_record(id_: str, session_id: str = "") -> int:
    """A message's record as a number: the same in every session that holds it, if it is the same anywhere."""
    record = record_id_of(id_)
    return hash64(record if is_uuid(record) else f"{session_id} {record}")


def to_milliseconds(at: datetime | None) -> int | None:
    """A time as rows keep it."""
    return int(at.timestamp() * 1000) if at is not None else None
