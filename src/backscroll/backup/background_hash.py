"""SHA-256 of data that is computed in another thread, while the caller goes on."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

__all__ = ["BackgroundHasher"]

_MIN_BYTES = 64 * 1024  # smaller data is hashed at once: a task costs more
_MAX_PENDING = 16


class Digest(Protocol):
    def update(self, data: bytes | memoryview, /) -> None: ...


class BackgroundHasher:
    """One thread that updates digests in the order of the calls. Memory is bounded: `update` may wait."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._pending: deque[Future[None]] = deque()

    def update(self, digest: Digest, data: bytes | memoryview) -> None:
        """Add data to a digest, after all earlier calls."""
        if len(data) < _MIN_BYTES:
            self.flush()
            digest.update(data)
            return
        self._pending.append(self._pool.submit(digest.update, data))
        if len(self._pending) > _MAX_PENDING:
            self._pending.popleft().result()

    def flush(self) -> None:
        """Wait until all digests are up to date."""
        while self._pending:
            self._pending.popleft().result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
