"""Decompress many bodies on two processors. Zstandard releases the interpreter lock."""

import os
import sys
from collections.abc import Sequence
from threading import Thread

from backscroll.archive.storage.codec import decompress

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError

__all__ = ["ParallelDecompressor"]

_MIN_THREAD_BYTES = 256 * 1024  # compressed; below this, starting a thread takes longer than it saves


class ParallelDecompressor:
    """Decompress bodies in a second thread while the caller does something else."""

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self._bodies = bodies
        self._decompressed: dict[int, bytes] = {}
        self._remaining = iter(range(len(bodies)))  # shared by both threads; each takes the next index
        is_large = len(bodies) > 1 and sum(map(len, bodies)) >= _MIN_THREAD_BYTES and os.cpu_count() != 1
        self._thread = Thread(target=self._work) if is_large else None
        if self._thread is not None:
            self._thread.start()

    def result(self) -> list[bytes]:
        """Return every body decompressed. Raises what `decompress` raises."""
        self._work()
        if self._thread is not None:
            self._thread.join()
        decompressed = self._decompressed
        return [
            decompressed[index] if index in decompressed else decompress(body)
            for index, body in enumerate(self._bodies)
        ]

    def _work(self) -> None:
        for index in self._remaining:
            try:
                self._decompressed[index] = decompress(self._bodies[index])
            except ZstdError:
                return  # `result` decompresses this body again and raises
