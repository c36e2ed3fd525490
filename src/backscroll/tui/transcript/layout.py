"""Layout of a transcript with any number of blocks.

Only the height of each block is stored. Rows are computed when they are displayed and kept in a small
LRU cache.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from backscroll.render.terminal.width import wrap_spans
from backscroll.tui.transcript.blocks import Block, Kind, Location, StyleName

__all__ = ["INDENT", "Anchor", "Layout", "Row", "text_width"]

INDENT = 2  # cells per enclosing subagent, and for the marker of the speaker
MIN_TEXT_WIDTH = 8
COMPACT_KINDS = ("thinking", "call", "subagent")  # no empty line between two of these
MAX_CACHED_BLOCKS = 512

Anchor = tuple[Location, int]  # a block and a line in it; valid in every layout of the same session


class Row(Struct, frozen=True):
    """One line on the screen: a heading, a wrapped part of a body line, or an empty line."""

    block_index: int
    part: Literal["gap", "heading", "body", "loading"]
    text: str = ""
    style: StyleName = "plain"
    body_line: int = 0
    start: int = 0  # offset of the text in the body line


def text_width(block: Block, width: int) -> int:
    """Return the number of cells for the text of a block in a panel of `width` cells."""
    fold_indent = INDENT if block.is_foldable else 0
    return max(width - INDENT - block.depth * INDENT - fold_indent, MIN_TEXT_WIDTH)


class Layout:
    """A vertical sequence of blocks in a fixed width, some of them folded."""

    def __init__(self, width: int) -> None:
        self.width = max(width, 1)
        self.blocks: list[Block] = []
        self.toggled: set[Location] = set()  # blocks that differ from the default of their kind
        self.expanded_kinds: set[Kind] = set()  # foldable kinds that are expanded by default
        self._heights: list[int] = []
        self._tops: list[int] = [0]  # first line of each block, and the total height
        self._index_by_location: dict[Location, int] = {}
        self._message_indexes: dict[str, list[int]] = {}  # blocks of the messages of each session, in order
        self._parents: list[int] = []  # the enclosing subagent of each block, or -1
        self._subagent_stack: list[int] = []  # the enclosing subagents of the next block
        self.block_rows = lru_cache(maxsize=MAX_CACHED_BLOCKS)(self._make_rows)

    @property
    def height(self) -> int:
        return self._tops[-1]

    def add_blocks(self, blocks: Iterable[Block]) -> None:
        """Append blocks."""
        for block in blocks:
            index = len(self.blocks)
            self.blocks.append(block)
            self._index_by_location.setdefault(block.location, index)
            ref, position = block.location
            if position >= 0:
                self._message_indexes.setdefault(ref, []).append(index)
            del self._subagent_stack[block.depth :]
            self._parents.append(self._subagent_stack[-1] if self._subagent_stack else -1)
            if block.kind == "subagent":
                self._subagent_stack.append(index)
            self._heights.append(self._measure(index))
            self._tops.append(self._tops[-1] + self._heights[-1])

    def replace_block(self, index: int, block: Block) -> None:
        self.blocks[index] = block
        self._remeasure([index])

    def with_width(self, width: int) -> "Layout":
        """Return the same layout for another width."""
        other = Layout(width)
        other.toggled = set(self.toggled)
        other.expanded_kinds = set(self.expanded_kinds)
        other.add_blocks(self.blocks)
        return other

    # --- lines and blocks ---------------------------------------------------------------------------------

    def find_block(self, location: Location) -> int | None:
        """Return the index of a message's block. For a hidden message, return the one before it."""
        if location in self._index_by_location:
            return self._index_by_location[location]
        ref, position = location
        indexes = self._message_indexes.get(ref, [])
        count_before = bisect_right(indexes, position, key=lambda index: self.blocks[index].location[1])
        return indexes[count_before - 1] if count_before else None

    def is_loaded(self, location: Location) -> bool:
        """Return whether the block of a message is final: blocks that are added later do not change it."""
        ref, position = location
        indexes = self._message_indexes.get(ref, [])
        return bool(indexes) and position <= self.blocks[indexes[-1]].location[1]

    def block_at(self, y: int) -> int:
        """Return the index of the block at a line."""
        return min(max(bisect_right(self._tops, y) - 1, 0), max(len(self.blocks) - 1, 0))

    def first_line(self, index: int) -> int:
        """Return the first line of a block, without the gap above it."""
        return self._tops[index] + self.gap_above(index) * (self._heights[index] > 0)

    def row_at(self, y: int) -> Row | None:
        """Return the row at a line."""
        if not 0 <= y < self.height:
            return None
        index = self.block_at(y)
        return self.block_rows(index)[y - self._tops[index]]

    def anchor_at(self, y: int) -> Anchor | None:
        """Return an anchor for a line, to find it again in another layout."""
        if not self.blocks:
            return None
        index = self.block_at(y)
        return self.blocks[index].location, max(y - self._tops[index], 0)

    def line_of(self, anchor: Anchor) -> int | None:
        """Return the line of an anchor, or None if its block is missing."""
        location, line = anchor
        index = self._index_by_location.get(location)
        if index is None:
            return None
        return self._tops[index] + min(line, max(self._heights[index] - 1, 0))

    # --- folding ------------------------------------------------------------------------------------------

    def is_expanded(self, index: int) -> bool:
        block = self.blocks[index]
        if not block.is_foldable:
            return True
        return (block.location in self.toggled) is not (block.kind in self.expanded_kinds)

    def toggle(self, index: int) -> None:
        """Expand or fold a block. A folded subagent hides all its blocks."""
        self.toggled ^= {self.blocks[index].location}
        self._remeasure(self._with_descendants(index))

    def reveal(self, index: int) -> None:
        """Expand the enclosing subagents of a block."""
        for ancestor in list(self._ancestors(index)):
            if not self.is_expanded(ancestor):
                self.toggle(ancestor)

    def _with_descendants(self, index: int) -> range:
        """Return the indexes of a block and, for a subagent, of all blocks in it."""
        block, end = self.blocks[index], index + 1
        if block.kind == "subagent":
            while end < len(self.blocks) and self.blocks[end].depth > block.depth:
                end += 1
        return range(index, end)

    def _ancestors(self, index: int) -> Iterator[int]:
        """Yield the enclosing subagents of a block, innermost first."""
        while (index := self._parents[index]) != -1:
            yield index

    def _remeasure(self, indexes: Iterable[int]) -> None:
        self.block_rows.cache_clear()
        for index in indexes:
            self._heights[index] = self._measure(index)
        self._tops = list(accumulate(self._heights, initial=0))

    # --- rows ---------------------------------------------------------------------------------------------

    def is_hidden(self, index: int) -> bool:
        """Return whether a block is inside a folded subagent."""
        return not all(map(self.is_expanded, self._ancestors(index)))

    def gap_above(self, index: int) -> int:
        """Return the number of empty lines above a block."""
        if index == 0:
            return 0
        kinds = self.blocks[index - 1].kind, self.blocks[index].kind
        return int(any(kind not in COMPACT_KINDS for kind in kinds))

    def _measure(self, index: int) -> int:
        """Return the number of rows, without wrapping lines that fit."""
        if self.is_hidden(index):
            return 0
        block = self.blocks[index]
        height = self.gap_above(index) + bool(block.heading)
        if not self.is_expanded(index) or block.kind == "subagent":
            return height
        if block.body is None:
            return height + 1
        width = text_width(block, self.width)
        fitting_count = sum(len(line) <= width and line.isascii() for line, _ in block.body)
        if fitting_count == len(block.body):
            return height + fitting_count
        return height + sum(len(wrap_spans(line, width)) for line, _ in block.body)

    def _make_rows(self, index: int) -> list[Row]:
        if self.is_hidden(index):
            return []
        block = self.blocks[index]
        rows = [Row(index, "gap")] * self.gap_above(index)
        if block.heading:
            rows.append(Row(index, "heading", block.heading))
        if not self.is_expanded(index) or block.kind == "subagent":
            return rows
        if block.body is None:
            return [*rows, Row(index, "loading", "…", "dim")]
        width = text_width(block, self.width)
        for line_index, (line, style) in enumerate(block.body):
            rows += [
                Row(index, "body", line[start:end], style, line_index, start)
                for start, end in wrap_spans(line, width)
            ]
        return rows
