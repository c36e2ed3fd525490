"""Memory that was freed, given back to the system."""

import sys
from collections.abc import Callable

__all__ = ["MUCH", "give_back_freed_memory", "give_back_now"]

# Parameters of the GNU C library's mallopt.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8

_LITTLE = 128 * 1024  # bytes
MUCH = 16 * 1024 * 1024  # for one that reads file after file: the next needs what the last one did
_ARENAS = 2


def give_back_freed_memory(kept: int = _LITTLE) -> None:
    """Have this process keep no more than so many bytes of what it frees, where the C library can be told so.

    Without this every thread of the index keeps the most that it ever needed, which for a large history is
    half as much again. But whoever gives back what he needs again in a moment waits for it to be emptied.
    """
    set_parameter = _function("mallopt")
    for parameter, value in ((_ARENA_MAX, _ARENAS), (_TRIM_THRESHOLD, kept), (_MMAP_THRESHOLD, kept)):
        set_parameter(parameter, value)


def give_back_now() -> None:
    """Give back what lies free between things that are still needed, which takes a few milliseconds.

    Merging parts of the index leaves much of that.
    """
    _function("malloc_trim")(0)


def _function(name: str) -> Callable[..., object]:
    """A function of the GNU C library; one that does nothing where there is another."""
    if sys.platform == "linux":
        import ctypes  # only those who read much need it

        try:
            found: Callable[..., object] = getattr(ctypes.CDLL(None), name)
        except (OSError, AttributeError):
            return _nothing
        return found
    return _nothing


def _nothing(*_: int) -> None:
    return None
