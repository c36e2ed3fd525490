"""Find all blobs that a root refers to, directly or through other blobs."""

import re
from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

__all__ = ["StoredBlob", "reachable_blobs", "referenced_ids"]

_BATCH_SIZE = 100
# A reference is the length 32 (a space in ASCII) and a SHA-256. Other bytes may look the same; they are not
# in the store, so they do no harm. 29 bytes of text in a row are not a digest.
_REFERENCE = re.compile(rb"\x20(?=([\x00-\xff]{32}))")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f\x80-\xff]")
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e]{29}")


class StoredBlob(NamedTuple):
    """A blob as stored in its row."""

    data: bytes
    is_text: bool


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
        while batch := list(islice(remaining, _BATCH_SIZE)):
            for id, stored in fetch(batch):
                yield id, stored
                if references := referenced_ids(_decode_hex(stored)):
                    found |= dict.fromkeys(each for each in references if each not in seen)
        pending = list(found)


def referenced_ids(data: bytes) -> list[str]:
    """Return the ids that a root, turn or archive may refer to; none for a message."""
    if data[:1] == b"{" or not _BINARY.search(data):
        return []
    return [id.hex() for id in dict.fromkeys(_REFERENCE.findall(data)) if not _TEXT.search(id)]


def _decode_hex(stored: StoredBlob) -> bytes:
    """Return the content of a blob. Some versions store everything except JSON as hex text."""
    if not stored.is_text or len(stored.data) % 2 or stored.data[:1] == b"{":
        return stored.data
    try:
        return unhexlify(stored.data)
    except ValueError:
        return stored.data
