"""Encode messages as compressed chunks, and ids as 64-bit hashes.

A large chunk consists of several Zstandard frames, so that one message is read without the others. Frames are
cut between messages. A seek table follows them in a skippable frame, so that decompressing the whole body
yields the same bytes as if it had one frame. A body of one frame has no seek table.
"""

import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache, lru_cache
from itertools import accumulate
from struct import Struct
from struct import pack as pack_values
from struct import unpack_from as unpack_values
from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec

from backscroll.model.message import Message, is_uuid, record_id_of

if TYPE_CHECKING:
    from hashlib import blake2b

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # first bytes of every compressed frame
_LEVEL = 3
_MESSAGE_LEVEL = 1  # messages are most of the data: 30 % faster, 5 % larger
_FLUSH_FRAME: Final = zstd.ZstdCompressor.FLUSH_FRAME
_MIN_COMPRESSED_BYTES = 64  # shorter data is stored as it is

_MIN_FRAME_BYTES = 24 * 1024  # smaller frames compress worse and decompress slower as a whole
_MAX_FRAME_BYTES = 32 * 1024  # exceeded only by a single large message
_MIN_REMAINDER_BYTES = 8 * 1024  # less than this is put into one frame with a large message
_TABLE_FORMAT = "<%dI"  # the message count of each frame, then the byte count of each frame
_SKIPPABLE_HEADER = Struct("<4sI")  # magic, size of the content
_SKIPPABLE_MAGIC = b"\x5b\x2a\x4d\x18"
_FOOTER = Struct("<II4s")  # CRC-32 of the table, frame count, magic
_FOOTER_MAGIC = b"\xf5frm"  # last bytes of a body with a seek table

_HASH = Struct(">q")
_encoder = msgspec.msgpack.Encoder()
_messages_decoder = msgspec.msgpack.Decoder(list[Message])
_raw_messages_decoder = msgspec.msgpack.Decoder(list[msgspec.Raw])
_message_decoder = msgspec.msgpack.Decoder(Message)


def compress(data: bytes) -> bytes:
    """Compress bytes. Short data is returned unchanged."""
    if _is_stored_uncompressed(data):
        return data
    return _compressor(_LEVEL).compress(data, _FLUSH_FRAME)


def decompress(data: bytes) -> bytes:
    """Undo `compress`."""
    return zstd.decompress(data) if data.startswith(_ZSTD_MAGIC) else data


def _is_stored_uncompressed(data: bytes) -> bool:
    return len(data) < _MIN_COMPRESSED_BYTES and not data.startswith(_ZSTD_MAGIC)


@cache
def _compressor(level: int) -> zstd.ZstdCompressor:
    """Return the shared compressor. Allocating its tables costs more than compressing a small body."""
    return zstd.ZstdCompressor(level)


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
    ranges = list(_frame_boundaries(ends))
    frames = [
        compress(view[ends[first - 1] if first else 0 : ends[end - 1]], _FLUSH_FRAME) for first, end in ranges
    ]
    return _append_seek_table(frames, [end - first for first, end in ranges])


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


class SeekTable(msgspec.Struct, frozen=True, gc=False):
    """Position of the first message and offset of the first byte of each frame; the last items are totals."""

    first_positions: tuple[int, ...]
    offsets: tuple[int, ...]

    def frame_index(self, position: int) -> int:
        """Return the frame that contains a message; the last frame if the position is too large."""
        return bisect_right(self.first_positions, position, 0, len(self.first_positions) - 1) - 1

    def frame(self, body: bytes, index: int) -> bytes:
        """Return one compressed frame of the body."""
        return body[self.offsets[index] : self.offsets[index + 1]]


def _frame_boundaries(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the past-the-end message of each frame, given the end offset of each message."""
    first = start = last_end = 0
    for position, end in enumerate(ends):
        size = last_end - start
        if size >= _MIN_FRAME_BYTES or (size >= _MIN_REMAINDER_BYTES and end - start > _MAX_FRAME_BYTES):
            yield first, position
            first, start = position, last_end
        last_end = end
    if ends:
        yield first, len(ends)


def _append_seek_table(frames: Sequence[bytes], message_counts: Sequence[int]) -> bytes:
    """Join compressed frames to a body and append the seek table if there are several."""
    if len(frames) == 1 and not frames[0].endswith(_FOOTER_MAGIC):
        return frames[0]
    table = pack_values(_TABLE_FORMAT % (2 * len(frames)), *message_counts, *map(len, frames))
    header = _SKIPPABLE_HEADER.pack(_SKIPPABLE_MAGIC, len(table) + _FOOTER.size)
    return b"".join([*frames, header, table, _FOOTER.pack(crc32(table), len(frames), _FOOTER_MAGIC)])


def read_seek_table(body: bytes) -> SeekTable | None:
    """Return the seek table of a body. None if it has no table or a damaged one: read the whole body then."""
    if not body.endswith(_FOOTER_MAGIC) or not body.startswith(_ZSTD_MAGIC) or len(body) < _FOOTER.size:
        return None
    end = len(body) - _FOOTER.size
    checksum, frame_count, _ = _FOOTER.unpack_from(body, end)
    start = end - 8 * frame_count
    if not frame_count or start < _SKIPPABLE_HEADER.size or crc32(body[start:end]) != checksum:
        return None
    values = unpack_values(_TABLE_FORMAT % (2 * frame_count), body, start)
    offsets = tuple(accumulate(values[frame_count:], initial=0))
    if offsets[-1] != start - _SKIPPABLE_HEADER.size:
        return None
    return SeekTable(tuple(accumulate(values[:frame_count], initial=0)), offsets)


def lacks_seek_table(body: bytes) -> bool:
    """Return whether a body has several frames but no valid seek table."""
    if not body.startswith(_ZSTD_MAGIC) or read_seek_table(body) is not None:
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


@cache
def _empty_hash() -> "blake2b":
    from hashlib import blake2b  # loads OpenSSL, which a search does not need

    return blake2b(digest_size=_HASH.size)


def to_milliseconds(at: datetime | None) -> int | None:
    """Return a time as the archive stores it: milliseconds since 1970."""
    return int(at.timestamp() * 1000) if at is not None else None
