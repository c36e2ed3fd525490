"""Blobs by the SHA-256 of what is in them, fetched a few at a time."""

from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice

__all__ = ["MAX_BLOB_BYTES", "BlobLoader", "batch_by_size", "blob_id"]

MAX_BLOB_BYTES = 64 * 1024 * 1024
_MAX_BATCH_BLOBS = 200
_MAX_BATCH_BYTES = 8 * 1024 * 1024

Fetch = Callable[[Sequence[str]], Mapping[str, bytes]]


def blob_id(value: bytes) -> str | None:
    """The id that these bytes are, or None when they are something else."""
    return value.hex() if len(value) == 32 else None


def batch_by_size(ids: Iterable[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """The ids, as many at a time as can be in memory together."""
    part: list[str] = []
    weight = 0
    for id in ids:
        size = sizes.get(id, 0)
        if part and weight + size > _MAX_BATCH_BYTES:
            yield part
            part, weight = [], 0
        part.append(id)
        weight += size
    if part:
        yield part


class BlobLoader:
    """A store's blobs, and the account of which were asked for.

    `fetch` gives those it has of the ids it is asked for. Where `sizes` are
    known, a blob too large to read is left out and batches stay small.
    """

    def __init__(self, fetch: Fetch, *, sizes: Mapping[str, int] | None = None) -> None:
        self._fetch = fetch
        self._sizes = sizes
        self.missing: dict[str, None] = {}  # asked for and not there, in the order met
        self.altered: dict[str, None] = {}  # there, and not what their id says

    def __contains__(self, id: str) -> bool:
        return self._sizes is None or id in self._sizes

    def get(self, id: str) -> bytes | None:
        """One blob, or None when it is not there or too large."""
        return next(iter(self.each([id])))[1]

    def each(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
        """The blobs in the order asked for, None where there is none."""
        for batch in self._batches(ids):
            found = self._fetch(tuple(dict.fromkeys(batch)))
            for id in batch:
                data = found.get(id)
                if data is None:
                    self.missing[id] = None
                    yield id, None
                else:
                    yield id, self._checked(id, data)

    def _batches(self, ids: Iterable[str]) -> Iterator[list[str]]:
        rest = iter(ids)
        while batch := list(islice(rest, _MAX_BATCH_BLOBS)):
            if self._sizes is None:
                yield batch
            else:
                yield from batch_by_size(batch, self._sizes)

    def _checked(self, id: str, data: bytes) -> bytes:
        if sha256(data).hexdigest() == id:
            return data
        # Some versions store what is not JSON as hex text.
        if not len(data) % 2 and data[:1] != b"{":
            try:
                plain = unhexlify(data)
            except ValueError:
                plain = b""
            if sha256(plain).hexdigest() == id:
                return plain
        self.altered[id] = None
        return data
