"""Small charts made of block characters."""

from collections.abc import Sequence

__all__ = ["bar", "sparkline"]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"


def bar(value: float, largest: float, width: int) -> str:
    """A bar as long as its value among others; what is more than nothing is seen."""
    if largest <= 0 or value <= 0 or width <= 0:
        return ""
    eighths = max(1, round(value / largest * width * 8))
    whole, rest = divmod(min(eighths, width * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def sparkline(values: Sequence[float]) -> str:
    """A column per value; nothing is a dot, so that a pause is not taken for little."""
    largest = max(values, default=0)
    return "".join(_height(value, largest) for value in values)


def _height(value: float, largest: float) -> str:
    if value <= 0:
        return "·"
    return _HEIGHTS[min(int(value / largest * len(_HEIGHTS)), len(_HEIGHTS) - 1)]
