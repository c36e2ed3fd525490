"""Many bodies unpacked together."""

import random
import sys

import pytest

from backscroll.archive.storage.codec import compress
from backscroll.archive.storage.decompress import ParallelDecompressor

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NOISE = random.Random(1)
BODIES = [NOISE.randbytes(size) for size in (0, 10, 40_000, 90_000, 70_000, 3, 100_000)]


@pytest.mark.parametrize("number", range(len(BODIES) + 1))
def test_bodies_come_in_their_order_however_many_there_are(number: int) -> None:
    assert ParallelDecompressor([compress(body) for body in BODIES[:number]]).result() == BODIES[:number]


@pytest.mark.parametrize("place", range(7))
def test_a_damaged_body_is_said_wherever_it_is(place: int) -> None:
    bodies = [compress(NOISE.randbytes(60_000)) for _ in range(7)]
    bodies[place] = bodies[place][:1000]
    with pytest.raises(zstd.ZstdError, match="ended before"):
        ParallelDecompressor(bodies).result()
