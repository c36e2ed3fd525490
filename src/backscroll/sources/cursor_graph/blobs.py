"""Load blobs by id, in batches. The id of a blob is the SHA-256 of its content."""

from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice

__all__ = ["MAX_BLOB_BYTES", "BlobLoader", "batch_by_size", "blob_id"]

MAX_BLOB_BYTES = 64 * 1024 * 1024
_MAX_BATCH_BLOBS = 200
_MAX_BATCH_BYTES = 8 * 1024 * 1024

FetchBlobs = Callable[[Sequence[str]], Mapping[str, bytes]]


def blob_id(value: bytes) -> str | None:
    """Return a binary id as hex digits; None if the value is not an id."""
    return value.hex() if len(value) == 32 else None


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


class BlobLoader:
    """Loads the blobs of a store, and records which are missing or altered.

    `fetch` returns the requested blobs that exist. If `sizes` is given, batches are limited by size.
    """

    def __init__(self, fetch: FetchBlobs, *, sizes: Mapping[str, int] | None = None) -> None:
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
