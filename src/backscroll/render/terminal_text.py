"""Text for terminals: ANSI styles, and measuring, truncating and wrapping in cells.

A CJK character or an emoji takes two cells, a combining character takes none. The widths agree with
`rich.cells`, which the TUI framework uses for its layout. This module does not import rich, because that
would slow down the start of commands with piped output.
"""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_ANSI_CODES = {
    "title": "1", "user": "1;36", "assistant": "1;32", "thinking": "2;3", "tool": "1", "error": "31",
    "system": "2", "agent": "35", "dim": "2", "added": "32", "removed": "31", "accent": "36", "code": "36",
    "strong": "1", "star": "33",
}  # fmt: skip


class Style:
    """Applies ANSI codes by name. Without colors it returns the text unchanged."""

    def __init__(self, *, is_colored: bool) -> None:
        self.is_colored = is_colored

    def __call__(self, name: str, text: str) -> str:
        if not self.is_colored or not text:
            return text
        return f"\x1b[{_ANSI_CODES[name]}m{text}\x1b[0m"


_GraphemeSpan = tuple[int, int, int]  # first character, character after the last one, cells

_ZERO_WIDTH_JOINER = "\u200d"
_EMOJI_SELECTOR = "\ufe0f"  # variation selector 16: show the preceding character as an emoji
_WIDENED_BY_SELECTOR = frozenset(
    "#*0123456789©®‼⁉™ℹ↔↕↖↗↘↙↩↪⌨⏏⏭⏮⏯⏱⏲⏸⏹⏺Ⓜ▪▫▶◀◻◼☀☁"
    "☂☃☄☎☑☘☝☠☢☣☦☪☮☯☸☹☺♀♂♟♠♣♥♦♨♻♾⚒⚔⚕⚖⚗⚙⚛⚜⚠⚧⚰⚱⛈⛏⛑⛓⛩⛰"
    "⛱⛴⛷⛸⛹✂✈✉✌✍✏✒✔✖✝✡✳✴❄❇❣❤➡⤴⤵⬅⬆⬇🅰🅱🅾🅿🌡🌤🌥🌦🌧🌨🌩🌪🌫🌬🌶🍽🎖"
    "🎗🎙🎚🎛🎞🎟🏋🏌🏍🏎🏔🏕🏖🏗🏘🏙🏚🏛🏜🏝🏞🏟🏳🏵🏷🐿👁📽🕉🕊🕯🕰🕳🕴🕵🕶🕷🕸🕹🖇🖊🖋🖌🖍🖐"
    "🖥🖨🖱🖲🖼🗂🗃🗄🗑🗒🗓🗜🗝🗞🗡🗣🗨🗯🗳🗺🛋🛍🛎🛏🛠🛡🛢🛣🛤🛥🛩🛰🛳"
)
_ZERO_WIDTH_CATEGORIES = ("Mn", "Me", "Mc", "Cf", "Cc", "Zl", "Zp")
_VISIBLE_FORMAT_CHARACTERS = (
    "\xad\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
_SYMBOL_CATEGORIES = ("So", "Sm", "Sk")
_NO_LINE_START = "、。，．！？：；）」』】》〉ー々…"
_WIDE_SINCE_UNICODE_16 = (  # Python 3.11 has the tables of Unicode 14
    ("\u2630", "\u2637"),
    ("\u268a", "\u268f"),
    ("\u4dc0", "\u4dff"),
    ("\U0001d300", "\U0001d376"),
)
_WIDE_BLOCKS = (  # where unassigned code points may become wide characters
    ("\u2ffc", "\u2fff"),
    ("\u31e4", "\u31ef"),
    ("\uf900", "\ufaff"),
    ("\U00016ff2", "\U00016ff6"),
    ("\U00017000", "\U00018dff"),
    ("\U0001aff0", "\U0001b2ff"),
    ("\U0001f300", "\U0001faff"),
    ("\U00020000", "\U0003fffd"),
)
_ZERO_WIDTH_RANGES = (  # Hangul vowels, final consonants and fillers, skin tones
    ("\u1160", "\u11ff"),
    ("\u3164", "\u3164"),
    ("\ud7b0", "\ud7fb"),
    ("\uffa0", "\uffa0"),
    ("\U0001f3fb", "\U0001f3ff"),
)


def cell_width(text: str) -> int:
    """Return the number of cells a line takes."""
    if text.isascii():
        return len(text)
    if _ZERO_WIDTH_JOINER not in text and _EMOJI_SELECTOR not in text:
        return sum(map(_character_width, text))
    return sum(cells for _, _, cells in split_graphemes(text))


def prefix_length(text: str, width: int) -> int:
    """Return how many characters at the start of a line fit into `width` cells."""
    if text.isascii():
        return min(width, len(text))
    used = 0
    for start, _, cells in split_graphemes(text):
        used += cells
        if used > width:
            return start
    return len(text)


def suffix_length(text: str, width: int) -> int:
    """Return how many characters at the end of a line fit into `width` cells."""
    if text.isascii():
        return min(width, len(text))
    used = 0
    for _, end, cells in reversed(list(split_graphemes(text))):
        used += cells
        if used > width:
            return len(text) - end
    return len(text)


def truncate(text: str, width: int) -> str:
    """Return a line in at most `width` cells, with ``…`` in place of the removed end."""
    if cell_width(text) <= width:
        return text
    return f"{text[: prefix_length(text, max(width - 1, 0))].rstrip()}…" if width > 0 else ""


def pad(text: str, width: int, *, is_right: bool = False) -> str:
    """Return a line in exactly `width` cells: truncated, or filled with spaces."""
    text = truncate(text, width)
    spaces = " " * (width - cell_width(text))
    return spaces + text if is_right else text + spaces


def wrap(line: str, width: int) -> Iterator[str]:
    """Break a line into lines of at most `width` cells, between words where possible.

    Continuation lines keep the indentation. Only the spaces at the breaks are removed.
    """
    line = line.expandtabs(8)
    if cell_width(line) <= width:
        yield line
        return
    indent = line[: len(line) - len(line.lstrip())]
    indent = indent if len(indent) <= min(width // 2, width - 2) else ""  # leaves space for a wide character
    rest = line
    while (end := prefix_length(rest, width)) < len(rest):
        first = next(stop for _, stop, _ in split_graphemes(rest) if stop > len(indent))
        end = max(end, first)  # a character wider than the terminal gets its own line
        at = _find_break(rest, first, end)
        yield rest[:at].rstrip(" ")
        tail = rest[at:].lstrip(" ")
        if not tail:
            return
        rest = indent + tail
    yield rest


def _find_break(text: str, shortest: int, longest: int) -> int:
    """Return where to break a line: after a space or next to a wide character, else at `longest`."""
    if longest < len(text) and text[longest] == " ":
        return longest
    head = text[: longest + 1]
    if head.isascii():
        space = head.rfind(" ", shortest, longest)
        return space + 1 if space >= 0 else longest
    starts = {start for start, _, _ in split_graphemes(head)}
    for index in range(longest, shortest, -1):
        if text[index - 1] == " ":
            return index
        if (
            index in starts
            and text[index] not in _NO_LINE_START
            and 2 in (_character_width(text[index - 1]), _character_width(text[index]))
        ):
            return index
    return longest


def wrap_spans(line: str, width: int) -> list[tuple[int, int]]:
    """Return the start and end of each piece of a line wrapped to `width` cells, at spaces where possible.

    Unlike `wrap`, this keeps character positions: the pieces cover the line except the spaces at the breaks.
    """
    if not line.isascii():
        return _wrap_graphemes(line, width)
    pieces: list[tuple[int, int]] = []
    start, length = 0, len(line)
    while length - start > width:
        space = line.rfind(" ", start + 1, start + width + 1)
        if space == -1 or not line[start:space].strip():
            pieces.append((start, start + width))
            start += width
            continue
        pieces.append((start, space))
        start = space + 1
    pieces.append((start, length))
    return pieces


def _wrap_graphemes(line: str, width: int) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    start = used = 0
    space = -1  # the last space of the piece
    used_at_space = 0
    for begin, _, cells in split_graphemes(line):
        if used + cells > width and begin > start:
            if line[begin] == " ":
                pieces.append((start, begin))
                start, used, space = begin + 1, 0, -1
                continue
            if space > start:
                pieces.append((start, space))
                start, used = space + 1, used - used_at_space
            else:
                pieces.append((start, begin))
                start, used = begin, 0
            space = -1
        used += cells
        if line[begin] == " ":
            space, used_at_space = begin, used
    pieces.append((start, len(line)))
    return pieces


def split_graphemes(text: str) -> Iterator[_GraphemeSpan]:
    """Split a text into characters as displayed: a base character with its combining characters."""
    start = cells = 0
    base = ""  # of the current span, until a selector has widened it
    is_emoji = False  # a joiner combines emoji; between letters it joins nothing
    is_joined = False
    for index, character in enumerate(text):
        is_joined = is_joined and _is_symbol(character)
        width = 0 if is_joined else _character_width(character)
        if width or not index:
            if index:
                yield start, index, cells
            start, cells = index, width
            base = character if width else ""
            is_emoji = _is_symbol(character)
            continue
        if character == _EMOJI_SELECTOR:
            cells += base in _WIDENED_BY_SELECTOR
            base = ""
        is_joined = character == _ZERO_WIDTH_JOINER and is_emoji
    if text:
        yield start, len(text), cells


def _is_symbol(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character) in _SYMBOL_CATEGORIES


@lru_cache(maxsize=4096)
def _character_width(character: str) -> int:
    category = unicodedata.category(character)
    if category in _ZERO_WIDTH_CATEGORIES:
        return 1 if character in _VISIBLE_FORMAT_CHARACTERS else 0
    if _is_in(character, _ZERO_WIDTH_RANGES):
        return 0
    if category == "Cn":  # Python 3.11 reports every unassigned code point as wide
        return 2 if _is_in(character, _WIDE_BLOCKS) else 1
    is_wide = unicodedata.east_asian_width(character) in "WF" or _is_in(character, _WIDE_SINCE_UNICODE_16)
    return 2 if is_wide else 1


def _is_in(character: str, ranges: tuple[tuple[str, str], ...]) -> bool:
    return any(first <= character <= last for first, last in ranges)
