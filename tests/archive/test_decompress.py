"""Parallel decompression of several values."""

import random
import sys

import pytest

from backscroll.archive.storage.codec import compress
from backscroll.archive.storage.delta import ParallelDecompressor

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NOISE = random.Random(1)
VALUES = [NOISE.randbytes(size) for size in (0, 10, 40_000, 90_000, 70_000, 3, 100_000)]


@pytest.mark.parametrize("count", range(len(VALUES) + 1))
def test_values_keep_their_order_for_any_count(count: int) -> None:
    assert ParallelDecompressor([compress(value) for value in VALUES[:count]]).result() == VALUES[:count]


@pytest.mark.parametrize("index", range(7))
def test_a_damaged_value_raises_an_error_at_any_index(index: int) -> None:
    values = [compress(NOISE.randbytes(60_000)) for _ in range(7)]
    values[index] = values[index][:1000]
    with pytest.raises(zstd.ZstdError, match="ended before"):
        ParallelDecompressor(values).result()
