"""Text measured in the columns it takes in a terminal, where some characters take two and some none."""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["cell_width", "pad", "prefix_length", "truncate", "wrap"]

_INVISIBLE = ("Mn", "Me", "Cf")
_CLOSING = "、。，．！？：；）」』】》〉ー々…"  # what no line begins with


@lru_cache(maxsize=4096)
def _cells_of(character: str) -> int:
    if unicodedata.category(character) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cell_width(text: str) -> int:
    """How many columns a line takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def truncate(text: str, width: int) -> str:
    """A line in at most so many columns; ``…`` stands for what was cut."""
    if cell_width(text) <= width:
        return text
    return f"{text[: prefix_length(text, max(width - 1, 0))].rstrip()}…" if width > 0 else ""


def pad(text: str, width: int, *, is_right: bool = False) -> str:
    """A line in exactly so many columns."""
    text = truncate(text, width)
    room = " " * (width - cell_width(text))
    return room + text if is_right else text + room


def wrap(line: str, width: int) -> Iterator[str]:
    """A line as lines of at most so many columns, broken between words where that can be.

    What is indented stays indented. Nothing but the spaces at the breaks is left out.
    """
    line = line.expandtabs(8)
    if cell_width(line) <= width:
        yield line
        return
    indent = line[: len(line) - len(line.lstrip())]
    indent = indent if len(indent) <= min(width // 2, width - 2) else ""  # a wide character fits after it
    rest = line
    while cell_width(rest) > width:
        end = max(
            prefix_length(rest, width), len(indent) + 1
        )  # a character wider than the terminal goes by itself
        at = _break(rest, len(indent) + 1, end)
        yield rest[:at].rstrip(" ")
        tail = rest[at:].lstrip(" ")
        if not tail:
            return
        rest = indent + tail
    yield rest


def _break(text: str, least: int, most: int) -> int:
    """Where a line is best broken: at a space or beside a character of two columns, else where it must be."""
    if most < len(text) and text[most] == " ":
        return most
    for place in range(most, least, -1):
        if text[place - 1] == " ":
            return place
        if (
            place < len(text)
            and text[place] not in _CLOSING
            and 2 in (_cells_of(text[place - 1]), _cells_of(text[place]))
        ):
            return place
    return most


def prefix_length(text: str, width: int) -> int:
    """How many characters of a line fit into so many columns."""
    if text.isascii():
        return min(width, len(text))
    taken = 0
    for place, character in enumerate(text):
        taken += _cells_of(character)
        if taken > width:
            return place
    return len(text)
