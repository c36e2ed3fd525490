"""Every blob that a root leads to, as it is stored."""

import re
from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

__all__ = ["StoredBlob", "reachable_blobs", "referenced_ids"]

_BATCH_SIZE = 100
# A reference is the length 32 and a SHA-256. Whether it is one, the store decides: nobody makes up
# the digest of something that is there. Text is passed over, in which a space stands for the length.
_REFERENCE = re.compile(rb"\x20(?=([\x00-\xff]{32}))")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f\x80-\xff]")
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e]{29}")


class StoredBlob(NamedTuple):
    """A blob as its row has it."""

    data: bytes
    is_text: bool


def reachable_blobs(
    ids: Iterable[str], fetch: Callable[[list[str]], Iterable[tuple[str, StoredBlob]]]
) -> Iterator[tuple[str, StoredBlob]]:
    """The blobs of these ids that are there, and all that they refer to, each once.

    `fetch` gives those it has of the ids it is asked for, a few at a time where they are large.
    """
    seen: set[str] = set()
    waiting = list(dict.fromkeys(ids))
    while waiting:
        seen.update(waiting)
        later: dict[str, None] = {}
        rest = iter(waiting)
        while batch := list(islice(rest, _BATCH_SIZE)):
            for id, stored in fetch(batch):
                yield id, stored
                if names := referenced_ids(_plain(stored)):
                    later |= dict.fromkeys(each for each in names if each not in seen)
        waiting = list(later)


def referenced_ids(data: bytes) -> list[str]:
    """The ids that a root, a turn, an archive may refer to; a message refers to none."""
    if data[:1] == b"{" or not _BINARY.search(data):
        return []
    return [id.hex() for id in dict.fromkeys(_REFERENCE.findall(data)) if not _TEXT.search(id)]


def _plain(stored: StoredBlob) -> bytes:
    """Some versions store what is not JSON as hex text."""
    if not stored.is_text or len(stored.data) % 2 or stored.data[:1] == b"{":
        return stored.data
    try:
        return unhexlify(stored.data)
    except ValueError:
        return stored.data
