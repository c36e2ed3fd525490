"""The transcript: layout of its blocks, painting of rows, and the widget.

Only the height of each block is stored. Rows are computed when they are displayed and kept in a small
LRU cache. Text is never parsed as terminal markup.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from backscroll.render.terminal_text import cell_width, truncate, wrap_spans
from backscroll.tui.blocks import Block, Body, Kind, Location, StyleName, session_location
from backscroll.tui.colors import component_styles

INDENT = 2  # cells per enclosing subagent, and for the marker of the speaker
MIN_TEXT_WIDTH = 8
COMPACT_KINDS = ("thinking", "call", "subagent")  # no empty line between two of these
MAX_CACHED_BLOCKS = 512
MAX_CACHED_LINES = 2048
MAX_HIGHLIGHTED_CHARS = 20_000  # of a body line; matches after this offset are not highlighted
INLINE_MARKDOWN = re.compile(r"(?P<code>`[^`]+`)|(?P<strong>\*\*[^*\s][^*]*\*\*)")
KIND_MARKERS = {"prompt": "▌ ", "answer": "● ", "error": "✗ "}
MARKER_STYLES = {"prompt": "heading"}  # other markers have the style of their kind
EXPANDED_MARKER, FOLDED_MARKER = "▾ ", "▸ "
STYLE_NAMES = (
    "title", "detail", "prompt", "plain", "strong", "code", "dim", "added", "removed", "error", "heading",
    "bar", "cursor", "match", "call", "answer",
)  # fmt: skip
MISSING_BODY: Body = (("This message is no longer in the archive.", "dim"),)
Anchor = tuple[Location, int]  # a block and a line in it; valid in every layout of the same session
MatchFinder = Callable[[str], list[tuple[int, int]]]  # returns the spans of all matches in a text
WordsCheck = Callable[[str], bool]  # returns whether a text has all words
StyledSpan = tuple[int, int, str]  # start, end, style name


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


class RowMatches:
    """Finds the words of a query in rows. Needs no styles: a search can finish before they are loaded."""

    def __init__(self, query: str) -> None:
        find, self._has_all_words = _text_search(query) if query.strip() else (None, None)
        self.in_text: MatchFinder = lru_cache(maxsize=MAX_CACHED_LINES)(find) if find else lambda _: []

    def matching_rows(self, layout: Layout, index: int) -> list[int]:
        """Return the offsets of the rows of a block to stop at.

        For a query with several words, these are the lines that have all of them. If there is no such line,
        it is the first one with a match.
        """
        rows = layout.block_rows(index)
        offsets = [offset for offset, row in enumerate(rows) if self.in_row(layout, row)]
        if self._has_all_words is None:
            return offsets
        first_rows: dict[tuple[str, int], int] = {}  # by line, which may be wrapped
        for offset in offsets:
            first_rows.setdefault((rows[offset].part, rows[offset].body_line), offset)
        complete = [
            offset for offset in first_rows.values() if self._has_all_words(_whole_line(layout, rows[offset]))
        ]
        return complete or offsets[:1]

    def in_row(self, layout: Layout, row: Row) -> list[tuple[int, int]]:
        """Return the spans of the matches in a row."""
        if row.part == "heading":
            return self.in_text(row.text)
        return self.in_body(row, layout.blocks[row.block_index])

    def in_body(self, row: Row, block: Block) -> list[tuple[int, int]]:
        """Return the matches in a row. The whole line is searched, because wrapping may split a match."""
        if row.part != "body" or block.body is None:
            return []
        row_end = row.start + len(row.text)
        matches = self.in_text(_body_line(row, block))
        clipped = ((max(start, row.start), min(end, row_end)) for start, end in matches)
        return [(start - row.start, end - row.start) for start, end in clipped if start < end]


def _text_search(query: str) -> tuple[MatchFinder | None, WordsCheck | None]:
    from backscroll.history.highlighting import all_words_check, highlighter  # start-up: loads the index

    return highlighter(query), all_words_check(query)


def _whole_line(layout: Layout, row: Row) -> str:
    """Return the whole line that a row is a part of."""
    block = layout.blocks[row.block_index]
    return _body_line(row, block) if row.part == "body" else row.text


def _body_line(row: Row, block: Block) -> str:
    return block.body[row.body_line][0][:MAX_HIGHLIGHTED_CHARS] if block.body is not None else ""


class Painter:
    """Styles rows with the colors of a theme and highlights matches."""

    def __init__(self, matches: RowMatches, styles: dict[str, Style]) -> None:
        self._matches = matches
        self._styles = styles

    def style(self, name: str) -> Style:
        """Return the style of a component class."""
        return self._styles.get(name, Style.null())

    def paint(self, layout: Layout, row: Row) -> Iterator[Segment]:
        """Yield the segments of a row from left to right."""
        block = layout.blocks[row.block_index]
        if row.part == "gap":
            return
        yield Segment("│ " * block.depth, self.style("bar"))
        if row.part == "heading":
            yield from self._paint_heading(layout, row, block)
            return
        yield self._margin(row, block)
        yield from self._paint_text(row, block)

    def _paint_heading(self, layout: Layout, row: Row, block: Block) -> Iterator[Segment]:
        if block.is_foldable:
            is_expanded = layout.is_expanded(row.block_index)
            yield Segment(EXPANDED_MARKER if is_expanded else FOLDED_MARKER, self.style("bar"))
        else:
            yield self._kind_marker(block)
        width = text_width(block, layout.width) + (INDENT if block.is_foldable else 0)
        right_label = truncate(block.right_label, width // 2)
        text = truncate(row.text, max(width - cell_width(right_label) - 2, 1))
        yield from self._paint_spans(text, self._heading_spans(text, block), self._matches.in_text(text))
        if right_label:
            yield Segment(" " * max(width - cell_width(text) - cell_width(right_label), 1))
            yield Segment(right_label, self.style("error" if block.is_failed else "dim"))

    def _heading_spans(self, text: str, block: Block) -> list[StyledSpan]:
        """Emphasize the name of a call and dim its description, which follows after two spaces."""
        if not block.is_foldable:
            return [(0, len(text), "heading")]
        name_end = text.find("  ")
        name_end = len(text) if name_end == -1 else name_end
        return [(0, name_end, "error" if block.is_failed else "call"), (name_end, len(text), "dim")]

    def _margin(self, row: Row, block: Block) -> Segment:
        if block.is_foldable:
            return Segment("  ┆ ", self.style("bar"))
        is_first = row.body_line == 0 and row.start == 0 and not block.heading
        if block.kind == "prompt" or is_first:
            return self._kind_marker(block)
        return Segment("  ")

    def _kind_marker(self, block: Block) -> Segment:
        style = self.style(MARKER_STYLES.get(block.kind, block.kind))
        return Segment(KIND_MARKERS.get(block.kind, "  "), style)

    def _paint_text(self, row: Row, block: Block) -> Iterator[Segment]:
        spans: list[StyledSpan] = [(0, len(row.text), "dim" if block.is_dim else row.style)]
        if row.style in ("plain", "prompt") and not block.is_foldable:
            for inline in INLINE_MARKDOWN.finditer(row.text):
                spans.append((*inline.span(), inline.lastgroup or "plain"))
        yield from self._paint_spans(row.text, spans, self._matches.in_body(row, block))

    def _paint_spans(
        self, text: str, spans: list[StyledSpan], matches: list[tuple[int, int]]
    ) -> Iterator[Segment]:
        """Yield a text in segments. Where spans overlap, the later one wins; matches win over all."""
        layers = [*spans, *((start, end, "match") for start, end in matches)]
        boundaries = sorted({0, len(text), *(edge for start, end, _ in layers for edge in (start, end))})
        for start, end in pairwise(boundaries):
            names = [name for first, last, name in layers if first <= start and end <= last]
            style = self.style(names[0]) if names else Style.null()
            for name in names[1:]:
                style += self.style(name)
            yield Segment(text[start:end], style)


class Transcript(ScrollView, can_focus=True):
    """A session with a line cursor. Virtualized: computes only the visible rows."""

    COMPONENT_CLASSES = {f"transcript--{name}" for name in STYLE_NAMES}  # noqa: RUF012
    BINDINGS = [  # noqa: RUF012
        Binding("up,k", "move(-1)", "Up"),
        Binding("down,j", "move(1)", "Down"),
        Binding("pageup,ctrl+b,b", "page(-1)", "Page up"),
        Binding("pagedown,ctrl+f,space", "page(1)", "Page down"),
        Binding("home,g", "go_to_edge(-1)", "Top"),
        Binding("end,G", "go_to_edge(1)", "End"),
        Binding("enter", "toggle_fold", "Expand or fold"),
        Binding("x", "toggle_all", "Expand or fold all"),
        Binding("left_square_bracket", "go_to_prompt(-1)", "Previous prompt"),
        Binding("right_square_bracket", "go_to_prompt(1)", "Next prompt"),
    ]
    cursor = reactive(0, repaint=False)  # line in the layout

    class BodyRequested(Message):
        """A block was expanded before its body was loaded."""

        def __init__(self, location: Location) -> None:
            super().__init__()
            self.location = location

    class AllToggled(Message):
        """All tool calls and thinking were expanded or folded. The session must be loaded again."""

    class CursorMoved(Message):
        """The cursor has moved to another line."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self.text_layout = Layout(80)
        self.highlight_query = ""
        self.is_complete = True
        self._target: Location | None = None  # go there when it is loaded
        self._is_end_target = False  # go to the end when all is loaded
        self._next_layout: Layout | None = None  # of the running load, until it is shown
        self._anchor: tuple[Anchor, int] | None = None  # of the cursor before a reload, and its screen line
        self._matches = RowMatches("")  # of the current query
        self._cached_painter: Painter | None = None  # for the current theme and query

    # --- loading ------------------------------------------------------------------------------------------

    def begin_load(self, *, target: Location | None = None, keep_position: bool = False) -> None:
        """Start to load a session, or the same one again with `keep_position`.

        On a reload, the old layout stays visible until the new one contains the cursor position.
        """
        old = self.text_layout
        self.is_complete = False
        self._target = target
        self._is_end_target = keep_position and bool(old.blocks) and self.cursor >= old.height - 1
        anchor = old.anchor_at(self.cursor) if keep_position else None
        self._anchor = (anchor, self.cursor - self.scroll_offset.y) if anchor is not None else None
        self._next_layout = Layout(self._text_width)
        if keep_position:
            self._next_layout.toggled = old.toggled
            self._next_layout.expanded_kinds = old.expanded_kinds
            return
        self.cursor = 0
        self._show_next_layout()
        self.scroll_to(0, 0, animate=False)

    def add_blocks(self, blocks: list[Block]) -> None:
        """Append blocks of the session."""
        if self._next_layout is not None:
            self._next_layout.add_blocks(blocks)
            if self._anchor is not None and self._next_layout.line_of(self._anchor[0]) is None:
                return
            self._show_next_layout()
        else:
            self.text_layout.add_blocks(blocks)
        self._update_virtual_size()
        self._go_to_target()
        self.refresh()

    def finish_load(self) -> None:
        """Mark the session as complete."""
        self._show_next_layout()
        self.is_complete = True
        if self._is_end_target:
            self.action_go_to_edge(1)
        self._go_to_target()
        self._anchor = None
        index = self.text_layout.find_block(self._target) if self._target is not None else None
        if index is None or self.text_layout.blocks[index].location != self._target:
            self._target = None  # otherwise its body is still being loaded, and `set_body` goes there
        self._move_cursor(self.cursor)
        for location in self.text_layout.toggled:
            index = self.text_layout.find_block(location)
            if index is not None and self.text_layout.blocks[index].body is None:
                self.post_message(self.BodyRequested(self.text_layout.blocks[index].location))

    def _show_next_layout(self) -> None:
        """Replace the visible layout with the one of the running load."""
        if self._next_layout is None:
            return
        has_width = self._next_layout.width == self._text_width
        self.text_layout = self._next_layout if has_width else self._next_layout.with_width(self._text_width)
        self._next_layout = None
        self._update_virtual_size()

    def show_block(self, block: Block) -> None:
        """Show a single block instead of a session."""
        self.begin_load()
        self.add_blocks([block])
        self.finish_load()

    def set_body(self, location: Location, body: Body | None) -> None:
        """Set the body of a block; None if the message no longer exists."""
        index = self.text_layout.find_block(location)
        if index is None:
            return
        block = replace(self.text_layout.blocks[index], body=MISSING_BODY if body is None else body)
        self.text_layout.replace_block(index, block)
        self._update_virtual_size()
        if self._target == location:
            self._go_to_target()
        self.refresh()

    def contains(self, ref: str) -> bool:
        """Return whether a session or subagent is part of the transcript."""
        return self.text_layout.find_block(session_location(ref)) is not None

    # --- target and matches -------------------------------------------------------------------------------

    def go_to(self, location: Location) -> None:
        """Go to a message and expand it, now or when it is loaded."""
        self._target = location
        self._go_to_target()

    def _go_to_target(self) -> None:
        """Go to the anchor and to the target, as far as they are loaded."""
        if self._anchor is not None and (line := self.text_layout.line_of(self._anchor[0])) is not None:
            screen_line, self._anchor = self._anchor[1], None
            if not self._is_end_target:
                self.scroll_to(y=line - screen_line, animate=False, force=True)
                self.cursor = line
        if self._target is None:
            return
        index = self.text_layout.find_block(self._target)
        is_exact = index is not None and self.text_layout.blocks[index].location == self._target
        if index is None or not (is_exact or self.is_complete):
            return
        self.text_layout.reveal(index)
        block = self.text_layout.blocks[index]
        if not self.text_layout.is_expanded(index):
            self.text_layout.toggle(index)
        self._update_virtual_size()
        if block.body is None:
            self.post_message(self.BodyRequested(block.location))
            self._move_cursor(self.text_layout.first_line(index), with_context=True)
            return
        self._target = None
        first_match = next(iter(self._match_lines(index)), self.text_layout.first_line(index))
        self._move_cursor(first_match, with_context=True)

    def go_to_match(self, step: int, locations: Sequence[Location]) -> bool:
        """Go to the next line with a match, in the current block or in the block of a location.

        Go backward if `step` is negative. Return False if there is no such line, or if it is not loaded yet.
        """
        layout = self.text_layout
        if not layout.blocks:
            return False
        is_whole = self.is_complete or self._next_layout is not None
        loaded = (location for location in locations if is_whole or layout.is_loaded(location))
        matching = {layout.find_block(location) for location in loaded}
        current = layout.block_at(self.cursor)
        lines = self._match_lines(current) if current in matching else []
        lines = [line for line in lines if (line - self.cursor) * step > 0]
        if lines:
            line = min(lines) if step > 0 else max(lines)
            self._move_cursor(line, with_context=True)
            return True
        indexes = [index for index in matching if index is not None and (index - current) * step > 0]
        if not indexes:
            return False
        self.go_to(layout.blocks[min(indexes) if step > 0 else max(indexes)].location)
        return True

    def _match_lines(self, index: int) -> list[int]:
        """Return the lines of a block to stop at."""
        top = self.text_layout.first_line(index) - self.text_layout.gap_above(index)
        return [top + offset for offset in self._matches.matching_rows(self.text_layout, index)]

    def highlight(self, query: str) -> None:
        """Highlight the words of a query."""
        if query != self.highlight_query:
            self.highlight_query = query
            self._matches = RowMatches(query)
            self._cached_painter = None
            self.refresh()

    # --- size ---------------------------------------------------------------------------------------------

    @property
    def _text_width(self) -> int:
        return max(self.scrollable_content_region.width, 1)

    def _update_virtual_size(self) -> None:
        self.virtual_size = Size(self._text_width, self.text_layout.height)

    def on_resize(self, event: events.Resize) -> None:
        if self.text_layout.width == self._text_width:
            return
        anchor, screen_line = self.text_layout.anchor_at(self.cursor), self.cursor - self.scroll_offset.y
        self.text_layout = self.text_layout.with_width(self._text_width)
        self._update_virtual_size()
        if anchor is not None and (line := self.text_layout.line_of(anchor)) is not None:
            self.cursor = line
            screen_line = min(screen_line, max(self.size.height - 1, 0))
            self.scroll_to(y=line - screen_line, animate=False, force=True)
        self.refresh()

    # --- cursor -------------------------------------------------------------------------------------------

    def _move_cursor(self, line: int, *, with_context: bool = False) -> None:
        """Move the cursor to a line and scroll it into view.

        With `with_context`, also scroll if the line is at the edge, to show the lines around it.
        """
        line = min(max(line, 0), max(self.text_layout.height - 1, 0))
        self.cursor = line
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if with_context and not top + 1 <= line < top + height - 1:
            self.scroll_to(y=max(line - height // 3, 0), animate=False, force=True)
        elif line < top:
            self.scroll_to(y=line, animate=False, force=True)
        elif line >= top + height:
            self.scroll_to(y=line - height + 1, animate=False, force=True)
        self.refresh()

    def watch_cursor(self, old: int, new: int) -> None:
        self.post_message(self.CursorMoved())

    def action_move(self, lines: int) -> None:
        top = self.scroll_offset.y
        # The mouse wheel may have scrolled the cursor out of view. The first key brings it back.
        nearest_visible = min(max(self.cursor, top), top + max(self.size.height - 1, 0))
        self._move_cursor(self.cursor + lines if nearest_visible == self.cursor else nearest_visible)

    def action_page(self, pages: int) -> None:
        height = max(self.size.height - 1, 1)
        self.scroll_to(y=self.scroll_offset.y + pages * height, animate=False, force=True)
        self._move_cursor(self.cursor + pages * height)

    def action_go_to_edge(self, direction: int) -> None:
        self._is_end_target = direction > 0 and not self.is_complete
        self._move_cursor(self.text_layout.height if direction > 0 else 0)

    def action_go_to_prompt(self, step: int) -> None:
        """Go to the next prompt, or the previous one if `step` is negative."""
        layout = self.text_layout
        if not layout.blocks:
            return
        index = layout.block_at(self.cursor)
        while 0 <= (index := index + step) < len(layout.blocks):
            if layout.blocks[index].turn and layout.blocks[index].kind == "prompt":
                line = layout.first_line(index)
                self.scroll_to(y=line, animate=False, force=True)
                self._move_cursor(line)
                return
        self.action_go_to_edge(step)

    def on_click(self, event: events.Click) -> None:
        line = self.scroll_offset.y + event.y
        row = self.text_layout.row_at(line)
        if row is None:
            return
        self._move_cursor(line)
        if row.part == "heading" and self.text_layout.blocks[row.block_index].is_foldable:
            self.action_toggle_fold()

    # --- folding ------------------------------------------------------------------------------------------

    @property
    def current_block(self) -> Block | None:
        """Return the block under the cursor."""
        layout = self.text_layout
        return layout.blocks[layout.block_at(self.cursor)] if layout.blocks else None

    def action_toggle_fold(self) -> None:
        """Expand or fold the block under the cursor."""
        block = self.current_block
        if block is None or not block.is_foldable:
            return
        index = self.text_layout.block_at(self.cursor)
        self.text_layout.toggle(index)
        if self.text_layout.is_expanded(index) and block.body is None:
            self.post_message(self.BodyRequested(block.location))
        self._update_virtual_size()
        self._move_cursor(self.text_layout.first_line(index))

    def action_toggle_all(self) -> None:
        """Expand or fold all tool calls and thinking. Subagents stay as they are."""
        layout = self.text_layout
        layout.toggled = {(ref, position) for ref, position in layout.toggled if position < 0}
        layout.expanded_kinds ^= {"call", "thinking"}
        self.post_message(self.AllToggled())

    # --- rendering ----------------------------------------------------------------------------------------

    @property
    def _painter(self) -> Painter:
        if self._cached_painter is None:
            styles = component_styles(self, "transcript", STYLE_NAMES)
            self._cached_painter = Painter(self._matches, styles)
        return self._cached_painter

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._cached_painter = None

    def render_line(self, y: int) -> Strip:
        line = y + self.scroll_offset.y
        width = self.size.width
        row = self.text_layout.row_at(line) if self.text_layout.blocks else None
        base = self.rich_style
        if row is None:
            return Strip.blank(width, base)
        segments = list(self._painter.paint(self.text_layout, row))
        strip = Strip(segments).adjust_cell_length(width)
        if line == self.cursor and self.has_focus:
            strip = strip.apply_style(self._painter.style("cursor"))
        return Strip(Segment.apply_style(strip, base), width)
