"""Many compressed bodies at once: the work leaves the interpreter to others, so two processors share it."""

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

_WORTH_IT = 256 * 1024  # compressed bytes; for fewer a thread takes longer to begin than it saves


class ParallelDecompressor:
    """Bodies that are being unpacked, while whoever began it does something else."""

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self._bodies = bodies
        self._plain: dict[int, bytes] = {}
        self._rest = iter(range(len(bodies)))  # each number is taken by one of the two
        is_worth_it = len(bodies) > 1 and sum(map(len, bodies)) >= _WORTH_IT and os.cpu_count() != 1
        self._other = Thread(target=self._work) if is_worth_it else None
        if self._other is not None:
            self._other.start()

    def result(self) -> list[bytes]:
        """Every body as it was before it was compressed. Raises what `decompress` raises."""
        self._work()
        if self._other is not None:
            self._other.join()
        plain = self._plain
        return [
            plain[place] if place in plain else decompress(body) for place, body in enumerate(self._bodies)
        ]

    def _work(self) -> None:
        for place in self._rest:
            try:
                self._plain[place] = decompress(self._bodies[place])
            except ZstdError:
                return  # whoever puts them together meets it again
