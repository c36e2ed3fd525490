"""LRU cache with a limit on entries or bytes."""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """Mapping that evicts the least recently used entries when their total size exceeds ``max_size``.

    The size of an entry is 1, or ``size_of(value)`` at the time of `put`. Put a value again after it grows.
    """

    def __init__(self, max_size: int, size_of: Callable[[V], int] | None = None) -> None:
        self.max_size = max_size
        self.size = 0
        self._size_of = size_of
        self._entries: dict[K, tuple[V, int]] = {}  # least recently used first

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value and mark it as used; None if it is not cached."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry
        return entry[0]

    def put(self, key: K, value: V) -> None:
        """Add or replace a value, then evict. A value larger than ``max_size`` is not kept."""
        self.discard(key)
        size = 1 if self._size_of is None else self._size_of(value)
        self._entries[key] = value, size
        self.size += size
        while self.size > self.max_size and self._entries:
            self.discard(next(iter(self._entries)))

    def discard(self, key: K) -> None:
        """Remove a value if it is cached."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry[1]

    def clear(self) -> None:
        """Remove all values."""
        self._entries.clear()
        self.size = 0
