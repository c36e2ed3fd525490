"""Load blobs by id, in batches, and find all blobs that a root refers to."""

import re
from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

MAX_BLOB_BYTES = 64 * 1024 * 1024
_MAX_BATCH_BLOBS = 200
_MAX_BATCH_BYTES = 8 * 1024 * 1024
_REACHABLE_BATCH_BLOBS = 100

# A reference is the length 32 (a space in ASCII) and a SHA-256. Other bytes may look the same; they are not
# in the store, so they do no harm. 29 bytes of text in a row are not a digest.
_REFERENCE = re.compile(rb"\x20(?=([\x00-\xff]{32}))")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f\x80-\xff]")
_LONG_TEXT = re.compile(rb"[\t\n\r\x20-\x7e]{29}")
_FetchBlobs = Callable[[Sequence[str]], Mapping[str, bytes]]


class StoredBlob(NamedTuple):
    """A blob as stored in its row."""

    data: bytes
    is_text: bool


class BlobLoader:
    """Loads the blobs of a store, and records which are missing or altered.

    `fetch` returns the requested blobs that exist. If `sizes` is given, batches are limited by size.
    """

    def __init__(self, fetch: _FetchBlobs, *, sizes: Mapping[str, int] | None = None) -> None:
        self._fetch = fetch
        self._sizes = sizes
        self.missing: dict[str, None] = {}  # requested but not found, in order of the requests
        self.altered: dict[str, None] = {}  # the content does not match the id

    def __contains__(self, id: str) -> bool:
        return self._sizes is None or id in self._sizes

    def get(self, id: str) -> bytes | None:
        """Return one blob; None if it is missing."""
        return next(iter(self.each([id])))[1]

    def each(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
        """Return the blobs in the requested order; None for a missing one."""
        for batch in self._batches(ids):
            found = self._fetch(tuple(dict.fromkeys(batch)))
            for id in batch:
                data = found.get(id)
                if data is None:
                    self.missing[id] = None
                    yield id, None
                else:
                    yield id, self._verify(id, data)

    def _batches(self, ids: Iterable[str]) -> Iterator[list[str]]:
        remaining = iter(ids)
        while batch := list(islice(remaining, _MAX_BATCH_BLOBS)):
            if self._sizes is None:
                yield batch
            else:
                yield from batch_by_size(batch, self._sizes)

    def _verify(self, id: str, data: bytes) -> bytes:
        """Compare content with its id. Return the content, decoded if it is hex text."""
        if sha256(data).hexdigest() == id:
            return data
        # Some versions store everything except JSON as hex text.
        if not len(data) % 2 and data[:1] != b"{":
            try:
                decoded = unhexlify(data)
            except ValueError:
                decoded = b""
            if sha256(decoded).hexdigest() == id:
                return decoded
        self.altered[id] = None
        return data


def batch_by_size(ids: Iterable[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Split ids into batches of blobs that fit into memory together."""
    batch: list[str] = []
    batch_bytes = 0
    for id in ids:
        size = sizes.get(id, 0)
        if batch and batch_bytes + size > _MAX_BATCH_BYTES:
            yield batch
            batch, batch_bytes = [], 0
        batch.append(id)
        batch_bytes += size
    if batch:
        yield batch


def blob_id(value: bytes) -> str | None:
    """Return a binary id as hex digits; None if the value is not an id."""
    return value.hex() if len(value) == 32 else None


def reachable_blobs(
    ids: Iterable[str], fetch: Callable[[list[str]], Iterable[tuple[str, StoredBlob]]]
) -> Iterator[tuple[str, StoredBlob]]:
    """Return the existing blobs with these ids and all blobs that they refer to, each once.

    `fetch` returns the requested blobs that exist.
    """
    seen: set[str] = set()
    pending = list(dict.fromkeys(ids))
    while pending:
        seen.update(pending)
        found: dict[str, None] = {}
        remaining = iter(pending)
        while batch := list(islice(remaining, _REACHABLE_BATCH_BLOBS)):
            for id, stored in fetch(batch):
                yield id, stored
                if references := referenced_ids(_decode_hex(stored)):
                    found |= dict.fromkeys(each for each in references if each not in seen)
        pending = list(found)


def referenced_ids(data: bytes) -> list[str]:
    """Return the ids that a root, turn or archive may refer to; none for a message."""
    if data[:1] == b"{" or not _BINARY.search(data):
        return []
    return [id.hex() for id in dict.fromkeys(_REFERENCE.findall(data)) if not _LONG_TEXT.search(id)]


def _decode_hex(stored: StoredBlob) -> bytes:
    """Return the content of a blob. Some versions store everything except JSON as hex text."""
    if not stored.is_text or len(stored.data) % 2 or stored.data[:1] == b"{":
        return stored.data
    try:
        return unhexlify(stored.data)
    except ValueError:
        return stored.data
