"""Cache of rendered parts of sessions, for all threads of a server."""

import pickle
import time
import zlib
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TypeVar

from msgspec import Struct

from backscroll.history import History
from backscroll.lru_cache import LRUCache
from backscroll.model import SessionSummary

__all__ = ["RENDERED_PARTS", "RenderedParts", "SessionParts"]

T = TypeVar("T")
MAX_CACHE_BYTES = 8 * 1024 * 1024  # compressed to a sixth: about 300 pages
# A part can contain facts of other sessions, such as the title of the session that it was copied from.
MAX_AGE_SECONDS = 60.0

_COMPRESSION_LEVEL = 1

_Key = tuple[Hashable, Hashable]  # session, name


class _Part(Struct, frozen=True):
    version: str
    rendered_at: float
    compressed: bytes


class RenderedParts:
    """LRU cache. A part is valid for a minute, unless its session is read again."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES, max_age_seconds: float = MAX_AGE_SECONDS) -> None:
        self._max_age_seconds = max_age_seconds
        self._parts = LRUCache[_Key, _Part](max_bytes, lambda part: len(part.compressed))
        self._lock = Lock()

    def of_session(self, history: History, summary: SessionSummary) -> "SessionParts":
        """Return the parts of a session in its current version."""
        session = str(history.archive_path), summary.parent_ref, summary.ref, summary.workspace_path
        return SessionParts(self, session, history.transcript.version(summary))

    def find(self, key: _Key, version: str) -> _Part | None:
        """Return a valid part; None if there is none."""
        with self._lock:
            part = self._parts.get(key)
            if part is None:
                return None
            if part.version != version or time.monotonic() - part.rendered_at > self._max_age_seconds:
                self._parts.discard(key)
                return None
            return part

    def put(self, key: _Key, part: _Part) -> None:
        """Add a part, then evict the least recently used ones."""
        with self._lock:
            self._parts.put(key, part)


class SessionParts:
    """The rendered parts of one version of a session."""

    def __init__(self, cache: RenderedParts, session: Hashable, version: str) -> None:
        self._cache = cache
        self._session = session
        self._version = version

    def get(self, name: Hashable, render: Callable[[], T]) -> T:
        """Return a part. It is rendered if it is not cached. The name includes all its parameters."""
        key = self._session, name
        part = self._cache.find(key, self._version)
        if part is not None:
            known: T = pickle.loads(zlib.decompress(part.compressed))
            return known
        started_at, value = time.monotonic(), render()
        compressed = zlib.compress(pickle.dumps(value), _COMPRESSION_LEVEL)
        self._cache.put(key, _Part(self._version, started_at, compressed))
        return value


RENDERED_PARTS = RenderedParts()
