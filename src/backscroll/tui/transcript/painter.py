"""Rows of a transcript as coloured text. Nothing in a text is ever taken for markup."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from rich.segment import Segment
from rich.style import Style

from backscroll.render.terminal.width import cell_width, truncate
from backscroll.tui.transcript.blocks import Block
from backscroll.tui.transcript.finder import Find
from backscroll.tui.transcript.layout import INDENT, Layout, Row, columns

__all__ = ["Painter"]

_INLINE = re.compile(r"(?P<code>`[^`]+`)|(?P<strong>\*\*[^*\s][^*]*\*\*)")
_LONGEST = 20_000  # characters of a line in which words are marked
_MARKS = {"prompt": "▌ ", "answer": "● ", "trouble": "✗ "}
_PAINTED = {"prompt": "head"}
_OPEN, _FOLDED = "▾ ", "▸ "

Stretch = tuple[int, int, str]  # from one character to before another, and how it is painted


class Painter:
    """Paints rows in the colours of a theme, with what is looked for marked."""

    def __init__(self, find: Find | None, styles: dict[str, Style]) -> None:
        self._styles = styles
        self._found: Find = lru_cache(maxsize=2048)(find) if find is not None else lambda _: []

    def style(self, name: str) -> Style:
        """The colours of a theme for something."""
        return self._styles.get(name, Style.null())

    def paint(self, layout: Layout, row: Row) -> Iterator[Segment]:
        """A row from left to right."""
        block = layout.blocks[row.block]
        if row.part == "gap":
            return
        yield Segment("│ " * block.depth, self.style("bar"))
        if row.part == "head":
            yield from self._head(layout, row, block)
            return
        yield from self._margin(layout, row, block)
        yield from self._text(row, block)

    def marks(self, layout: Layout, row: Row) -> list[tuple[int, int]]:
        """What stands in a row of what is looked for."""
        if row.part == "head":
            return self._found(row.text)
        return self._row_marks(row, layout.blocks[row.block])

    def _head(self, layout: Layout, row: Row, block: Block) -> Iterator[Segment]:
        if block.is_foldable:
            yield Segment(_OPEN if layout.is_open(row.block) else _FOLDED, self.style("bar"))
        else:
            yield Segment(_MARKS.get(block.kind, "  "), self.style(_PAINTED.get(block.kind, block.kind)))
        room = columns(block, layout.width) + (INDENT if block.is_foldable else 0)
        aside = truncate(block.aside, room // 2)
        text = truncate(row.text, max(room - cell_width(aside) - 2, 1))
        name = "call" if block.is_foldable else "head"
        yield from self._painted(text, self._head_stretches(text, name, block))
        if aside:
            yield Segment(" " * max(room - cell_width(text) - cell_width(aside), 1))
            yield Segment(aside, self.style("trouble" if block.is_failed else "dim"))

    def _head_stretches(self, text: str, name: str, block: Block) -> list[Stretch]:
        """A call's name stands out; what it is about does not."""
        if not block.is_foldable:
            return [(0, len(text), name)]
        end = text.find("  ")
        end = len(text) if end == -1 else end
        return [(0, end, "trouble" if block.is_failed else name), (end, len(text), "dim")]

    def _margin(self, layout: Layout, row: Row, block: Block) -> Iterator[Segment]:
        is_first = row.line == 0 and row.start == 0 and not block.head
        if block.is_foldable:
            yield Segment("  ┆ ", self.style("bar"))
        elif block.kind == "prompt" or is_first:
            yield Segment(_MARKS.get(block.kind, "  "), self.style(_PAINTED.get(block.kind, block.kind)))
        else:
            yield Segment("  ")

    def _text(self, row: Row, block: Block) -> Iterator[Segment]:
        stretches: list[Stretch] = [(0, len(row.text), "dim" if block.is_dim else row.tone)]
        if row.tone in ("plain", "prompt") and not block.is_foldable:
            for found in _INLINE.finditer(row.text):
                stretches.append((*found.span(), found.lastgroup or "plain"))
        yield from self._painted(row.text, stretches, self._row_marks(row, block))

    def _row_marks(self, row: Row, block: Block) -> list[tuple[int, int]]:
        """What of a line was found is looked for in all of it: a word may be cut by the row's end."""
        if row.part != "body" or block.body is None:
            return []
        end = row.start + len(row.text)
        found = self._found(block.body[row.line][0][:_LONGEST])
        places = ((max(first, row.start), min(last, end)) for first, last in found)
        return [(first - row.start, last - row.start) for first, last in places if first < last]

    def _painted(
        self, text: str, stretches: list[Stretch], marks: list[tuple[int, int]] | None = None
    ) -> Iterator[Segment]:
        """A text in pieces; of stretches that overlap the later one counts, and what was found above all."""
        marks = self._found(text) if marks is None else marks
        layers = [*stretches, *((start, end, "match") for start, end in marks)]
        cuts = sorted({0, len(text), *(edge for start, end, _ in layers for edge in (start, end))})
        for start, end in pairwise(cuts):
            names = [name for first, last, name in layers if first <= start and end <= last]
            style = self.style(names[0]) if names else Style.null()
            for name in names[1:]:
                style += self.style(name)
            yield Segment(text[start:end], style)
