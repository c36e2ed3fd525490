"""Bars and sparklines of block characters."""

from collections.abc import Sequence

__all__ = ["bar", "sparkline"]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"


def bar(value: float, largest: float, width: int) -> str:
    """Return a bar of up to `width` cells; at least an eighth of a cell for a value above zero."""
    if largest <= 0 or value <= 0 or width <= 0:
        return ""
    eighths = max(1, round(value / largest * width * 8))
    whole, rest = divmod(min(eighths, width * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def sparkline(values: Sequence[float]) -> str:
    """Return one block per value. Zero is a dot, to distinguish it from a small value."""
    largest = max(values, default=0)
    return "".join(_block(value, largest) for value in values)


def _block(value: float, largest: float) -> str:
    if value <= 0:
        return "·"
    return _HEIGHTS[min(int(value / largest * len(_HEIGHTS)), len(_HEIGHTS) - 1)]
