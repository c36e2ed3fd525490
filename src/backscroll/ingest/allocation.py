"""Memory that was freed, given back to the system."""

import sys

__all__ = ["MUCH", "give_back_freed_memory"]

# Parameters of the GNU C library's mallopt.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8

_LITTLE = 128 * 1024  # bytes
MUCH = 8 * 1024 * 1024  # for one that reads file after file: the next needs what the last one did
_ARENAS = 2


def give_back_freed_memory(kept: int = _LITTLE) -> None:
    """Have this process keep no more than so many bytes of what it frees, where the C library can be told so.

    Without this every thread of the index keeps the most that it ever needed, which for a large history is
    half as much again. But whoever gives back what he needs again in a moment waits for it to be emptied.
    """
    if sys.platform != "linux":
        return
    import ctypes  # only those who read much need it

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_TRIM_THRESHOLD, kept), (_MMAP_THRESHOLD, kept)):
        mallopt(parameter, value)
