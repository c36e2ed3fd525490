"""Return freed memory to the operating system, with glibc."""

import sys
from collections.abc import Callable

__all__ = ["WORKER_TRIM_BYTES", "limit_free_memory", "malloc_trim"]

# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

DEFAULT_TRIM_BYTES = 128 * 1024
WORKER_TRIM_BYTES = 16 * 1024 * 1024  # a worker reads file after file and reuses the memory of the last one
MAX_ARENAS = 2


def limit_free_memory(max_bytes: int = DEFAULT_TRIM_BYTES) -> None:
    """Limit the freed memory that this process keeps.

    Without a limit every thread of the index keeps its peak, which is half as much again for a large
    history. A limit that is too low costs time: returned pages are zeroed before they are used again.
    """
    mallopt = _libc_function("mallopt")
    for parameter, value in (
        (_M_ARENA_MAX, MAX_ARENAS),
        (_M_TRIM_THRESHOLD, max_bytes),
        (_M_MMAP_THRESHOLD, max_bytes),
    ):
        mallopt(parameter, value)


def malloc_trim() -> None:
    """Return free memory between used blocks. Takes a few milliseconds; index merges leave much of it."""
    _libc_function("malloc_trim")(0)


def _libc_function(name: str) -> Callable[..., object]:
    """Return a function of glibc; a function without effect on other systems."""
    if sys.platform == "linux":
        import ctypes  # start-up time

        try:
            function: Callable[..., object] = getattr(ctypes.CDLL(None), name)
        except (OSError, AttributeError):
            return _no_effect
        return function
    return _no_effect


def _no_effect(*_: int) -> None:
    return None
