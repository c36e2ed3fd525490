"""Memory that was freed, given back to the system."""

import sys

__all__ = ["give_back_freed_memory"]

# Parameters of the GNU C library's mallopt.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8

_LARGE = 128 * 1024  # bytes
_ARENAS = 2


def give_back_freed_memory() -> None:
    """Have this process keep little of what it frees, where the C library can be told so.

    Without this every thread of the index keeps the most that it ever needed, which for a large history is
    half as much again.
    """
    if sys.platform != "linux":
        return
    import ctypes  # only those who read much need it

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_TRIM_THRESHOLD, _LARGE), (_MMAP_THRESHOLD, _LARGE)):
        mallopt(parameter, value)
