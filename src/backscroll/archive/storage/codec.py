"""Encode messages as compressed chunks, and ids as 64-bit hashes."""

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
_MESSAGE_LEVEL = 1  # messages are most of the data: 30 % faster, 5 % larger
_FLUSH_FRAME: Final = zstd.ZstdCompressor.FLUSH_FRAME
_MIN_COMPRESSED_BYTES = 64  # shorter data is stored as it is
_HASH = Struct(">q")
_encoder = msgspec.msgpack.Encoder()
_messages_decoder = msgspec.msgpack.Decoder(list[Message])
_raw_messages_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])
_message_decoder = msgspec.msgpack.Decoder(Message)


@cache
def _compressor(level: int) -> zstd.ZstdCompressor:
    """Return the shared compressor. Allocating its tables costs more than compressing a small body."""
    return zstd.ZstdCompressor(level)


def compress(data: bytes) -> bytes:
    """Compress bytes. Short data is returned unchanged."""
    if _is_stored_uncompressed(data):
        return data
    return _compressor(_LEVEL).compress(data, _FLUSH_FRAME)


def _is_stored_uncompressed(data: bytes) -> bool:
    return len(data) < _MIN_COMPRESSED_BYTES and not data.startswith(ZSTD_MAGIC)


def decompress(data: bytes) -> bytes:
    """Undo `compress`."""
    return zstd.decompress(data) if data.startswith(ZSTD_MAGIC) else data


def encode_chunk(messages: Sequence[Message]) -> bytes:
    """Return messages as a compressed chunk."""
    return encode_messages(messages)[1]


def encode_messages(messages: Sequence[Message]) -> tuple[bytes, bytes]:
    """Return messages as MessagePack, and the same compressed as a chunk."""
    buffer = bytearray(_list_header(len(messages)))
    ends = []
    for message in messages:
        _encoder.encode_into(message, buffer, -1)
        ends.append(len(buffer))
    data = bytes(buffer)
    del buffer  # free the memory before compressing: a message may be very long
    return data, _compress_frames(data, ends)


def recompress_chunk(data: bytes) -> bytes:
    """Compress a chunk that was decompressed. Equals what `encode_chunk` returned for its messages."""
    sizes = [len(bytes(message)) for message in _raw_messages_decoder.decode(data)]
    ends = accumulate(sizes, initial=len(_list_header(len(sizes))))
    return _compress_frames(data, list(ends)[1:])


def _compress_frames(data: bytes, ends: Sequence[int]) -> bytes:
    """Compress a chunk frame by frame, given the end offset of each message."""
    if _is_stored_uncompressed(data):
        return data
    view = memoryview(data)
    compress = _compressor(_MESSAGE_LEVEL).compress
    ranges = list(frame_boundaries(ends))
    frames = [
        compress(view[ends[first - 1] if first else 0 : ends[end - 1]], _FLUSH_FRAME) for first, end in ranges
    ]
    return append_seek_table(frames, [end - first for first, end in ranges])


@lru_cache(maxsize=1 << 8)
def _list_header(count: int) -> bytes:
    """Return the MessagePack header of a list of this length."""
    return _encoder.encode([None] * count)[: -count or None]


def decode_chunk(body: bytes) -> list[Message]:
    """Return the messages of a chunk that has no delta base."""
    return decode_messages(decompress(body))


def decode_messages(data: bytes) -> list[Message]:
    """Return the messages of a decompressed chunk."""
    return _messages_decoder.decode(data)


def lacks_seek_table(body: bytes) -> bool:
    """Return whether a body has several frames but no valid seek table."""
    if not body.startswith(ZSTD_MAGIC) or read_seek_table(body) is not None:
        return False
    first = zstd.ZstdDecompressor()
    first.decompress(body)
    return bool(first.unused_data)


def frame_as_list(data: bytes, table: SeekTable, index: int) -> bytes:
    """Return the messages of one decompressed frame as a MessagePack list."""
    header = _list_header(table.first_positions[-1]) if not index else b""
    if not data.startswith(header):
        raise msgspec.DecodeError("The message count differs from the seek table.")
    return _list_header(table.first_positions[index + 1] - table.first_positions[index]) + data[len(header) :]


class Chunk:
    """A decompressed chunk that decodes single messages."""

    def __init__(self, data: bytes) -> None:
        self._raw_messages = _raw_messages_decoder.decode(data)

    def __len__(self) -> int:
        return len(self._raw_messages)

    def message(self, index: int) -> Message:
        return _message_decoder.decode(self._raw_messages[index])

    def contains(self, index: int, *needles: bytes) -> bool:
        """Return whether the encoded message contains all of these byte strings."""
        encoded = bytes(self._raw_messages[index])
        return all(needle in encoded for needle in needles)


@cache
def _empty_hash() -> "blake2b":
    from hashlib import blake2b  # loads OpenSSL, which a search does not need

    return blake2b(digest_size=_HASH.size)


def hash64(id_: str) -> int:
    """Return an id as a 64-bit BLAKE2b hash, the same in every archive."""
    digest = _empty_hash().copy()  # 30 % faster than a new one; called for every record and tool call
    digest.update(id_.encode("utf-8", "surrogatepass"))
    value: int = _HASH.unpack(digest.digest())[0]
    return value


@lru_cache(maxsize=1 << 12)  # called again for the token usage of the same message
def hash_record(message_id: str, session_id: str = "") -> int:
    """Return the hash of a message's record.

    It is the same in every session that contains the record, if the tool's record ids are unique across
    sessions. Otherwise it is unique to the session.
    """
    record = record_id_of(message_id)
    return hash64(record if is_uuid(record) else f"{session_id} {record}")


def to_milliseconds(at: datetime | None) -> int | None:
    """Return a time as the archive stores it: milliseconds since 1970."""
    return int(at.timestamp() * 1000) if at is not None else None
