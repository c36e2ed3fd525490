"""Where every line of a transcript stands, for any number of blocks.

Only heights are kept. The rows of a block are made when they are looked at, and
forgotten soon after.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

from msgspec import Struct

from backscroll.render.terminal.width import wrap_spans
from backscroll.tui.transcript.blocks import Block, Place, Tone

__all__ = ["INDENT", "Layout", "Row", "columns"]

INDENT = 2  # cells for each subagent around a block, and for what marks who speaks
_NARROWEST = 8
_COMPACT = ("thinking", "call", "agent")
_KEPT = 512  # blocks whose rows are kept at hand


class Row(Struct, frozen=True):
    """One line on the screen: a piece of a line of a block, its head, or the room above it."""

    block: int
    part: str  # "gap", "head", "body", "wait"
    text: str = ""
    tone: Tone = "plain"
    line: int = 0  # of the body
    start: int = 0  # where the piece begins in that line


def columns(block: Block, width: int) -> int:
    """The cells that a block's text has."""
    folded = INDENT if block.is_foldable else 0
    return max(width - INDENT - block.depth * INDENT - folded, _NARROWEST)


class Layout:
    """Blocks one below the other, some of them folded, in lines so wide."""

    def __init__(self, width: int) -> None:
        self.width = max(width, 1)
        self.blocks: list[Block] = []
        self.opened: set[Place] = set()  # folded blocks that somebody has opened
        self.is_open_by_default: set[str] = set()  # kinds that are not folded at first
        self._heights: list[int] = []
        self._tops: list[int] = [0]
        self._places: dict[Place, int] = {}
        self._said: dict[str, list[int]] = {}  # the blocks of each session's messages, in order
        self._parents: list[int] = []  # the subagent around each block, or -1
        self._around: list[int] = []  # the subagents around the next block
        self.rows_of = lru_cache(maxsize=_KEPT)(self._rows_of)

    @property
    def height(self) -> int:
        return self._tops[-1]

    def add(self, blocks: Iterable[Block]) -> None:
        """Put blocks below the last one."""
        for block in blocks:
            number = len(self.blocks)
            self.blocks.append(block)
            self._places.setdefault(block.place, number)
            if block.place[1] >= 0:
                self._said.setdefault(block.place[0], []).append(number)
            del self._around[block.depth :]
            self._parents.append(self._around[-1] if self._around else -1)
            if block.kind == "agent":
                self._around.append(number)
            self._heights.append(self._measure(number))
            self._tops.append(self._tops[-1] + self._heights[-1])

    def put(self, number: int, block: Block) -> None:
        """Put a block in the place of another."""
        self.blocks[number] = block
        self._settle([number])

    def at(self, width: int) -> "Layout":
        """The same in another width."""
        other = Layout(width)
        other.opened = set(self.opened)
        other.is_open_by_default = set(self.is_open_by_default)
        other.add(self.blocks)
        return other

    # --- places -------------------------------------------------------------------------------------------

    def find(self, place: Place) -> int | None:
        """The block of a message; when it is not shown itself, of the nearest before it in its session."""
        if place in self._places:
            return self._places[place]
        said = self._said.get(place[0], [])
        before = bisect_right(said, place[1], key=lambda number: self.blocks[number].place[1])
        return said[before - 1] if before else None

    def block_at(self, y: int) -> int:
        """The block that a line belongs to."""
        return min(max(bisect_right(self._tops, y) - 1, 0), max(len(self.blocks) - 1, 0))

    def top_of(self, number: int) -> int:
        """The line where a block begins, the room above it left out."""
        return self._tops[number] + self.gap(number) * (self._heights[number] > 0)

    def row(self, y: int) -> Row | None:
        """What stands in a line."""
        if not 0 <= y < self.height:
            return None
        number = self.block_at(y)
        return self.rows_of(number)[y - self._tops[number]]

    def anchor(self, y: int) -> tuple[Place, int] | None:
        """What a line shows, told so that it can be found again in another layout."""
        if not self.blocks:
            return None
        number = self.block_at(y)
        return self.blocks[number].place, max(y - self._tops[number], 0)

    def line_of(self, anchor: tuple[Place, int]) -> int | None:
        """The line of an anchor; None when its block is not there."""
        number = self._places.get(anchor[0])
        if number is None:
            return None
        return self._tops[number] + min(anchor[1], max(self._heights[number] - 1, 0))

    # --- folding ------------------------------------------------------------------------------------------

    def is_open(self, number: int) -> bool:
        """Whether all of a block is shown."""
        block = self.blocks[number]
        if not block.is_foldable:
            return True
        return (block.place in self.opened) is not (block.kind in self.is_open_by_default)

    def toggle(self, number: int) -> None:
        """Open a folded block, or fold it again; with a subagent all that it said."""
        self.opened ^= {self.blocks[number].place}
        self._settle(self._inside(number))

    def reveal(self, number: int) -> None:
        """Open the subagents that a block is inside of, so that it is seen."""
        for around in list(self._above(number)):
            if not self.is_open(around):
                self.toggle(around)

    def _inside(self, number: int) -> range:
        """A block, and all that a subagent said if it is one."""
        block, end = self.blocks[number], number + 1
        if block.kind == "agent":
            while end < len(self.blocks) and self.blocks[end].depth > block.depth:
                end += 1
        return range(number, end)

    def _above(self, number: int) -> Iterator[int]:
        """The subagents around a block, from the inside."""
        while (number := self._parents[number]) != -1:
            yield number

    def _settle(self, numbers: Iterable[int]) -> None:
        self.rows_of.cache_clear()
        for number in numbers:
            self._heights[number] = self._measure(number)
        self._tops = list(accumulate(self._heights, initial=0))

    # --- rows ---------------------------------------------------------------------------------------------

    def is_hidden(self, number: int) -> bool:
        """Whether it is inside a folded subagent."""
        return not all(map(self.is_open, self._above(number)))

    def gap(self, number: int) -> int:
        """The empty lines above a block: calls that follow each other stand close."""
        if number == 0:
            return 0
        return int(self.blocks[number].kind not in _COMPACT or self.blocks[number - 1].kind not in _COMPACT)

    def _measure(self, number: int) -> int:
        if self.is_hidden(number):
            return 0
        block = self.blocks[number]
        height = self.gap(number) + bool(block.head)
        if not self.is_open(number) or block.kind == "agent":
            return height
        if block.body is None:
            return height + 1
        width = columns(block, self.width)
        short = sum(len(line) <= width and line.isascii() for line, _ in block.body)
        if short == len(block.body):
            return height + short
        return height + sum(len(wrap_spans(line, width)) for line, _ in block.body)

    def _rows_of(self, number: int) -> list[Row]:
        if self.is_hidden(number):
            return []
        block = self.blocks[number]
        rows = [Row(number, "gap")] * self.gap(number)
        if block.head:
            rows.append(Row(number, "head", block.head))
        if not self.is_open(number) or block.kind == "agent":
            return rows
        if block.body is None:
            return [*rows, Row(number, "wait", "…", "dim")]
        width = columns(block, self.width)
        for place, (line, tone) in enumerate(block.body):
            rows += [
                Row(number, "body", line[start:end], tone, place, start)
                for start, end in wrap_spans(line, width)
            ]
        return rows
