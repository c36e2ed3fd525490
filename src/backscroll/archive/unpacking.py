"""Many compressed bodies at once: the work leaves the interpreter to others, so two processors share it."""

import os
import sys
from collections.abc import Sequence
from threading import Thread

from backscroll.archive.bodies import decompress

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError

__all__ = ["decompress_all"]

_WORTH_IT = 128 * 1024  # compressed bytes; for fewer a thread takes longer to begin than it saves


def decompress_all(bodies: Sequence[bytes]) -> list[bytes]:
    """Every body as it was before it was compressed. Raises what `decompress` raises."""
    if len(bodies) < 2 or sum(map(len, bodies)) < _WORTH_IT or os.cpu_count() == 1:
        return list(map(decompress, bodies))
    plain: dict[int, bytes] = {}
    rest = iter(range(len(bodies)))  # each number is taken by one of the two

    def work() -> None:
        for number in rest:
            try:
                plain[number] = decompress(bodies[number])
            except ZstdError:
                return  # whoever puts them together meets it again

    other = Thread(target=work)
    other.start()
    work()
    other.join()
    return [plain[number] if number in plain else decompress(body) for number, body in enumerate(bodies)]
