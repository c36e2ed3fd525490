"""Virtualized transcript: computes only the visible rows."""

from collections.abc import Sequence

from msgspec.structs import replace
from rich.segment import Segment
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from backscroll.tui.colors import component_styles
from backscroll.tui.transcript.blocks import Block, Body, Location, session_location
from backscroll.tui.transcript.layout import Anchor, Layout
from backscroll.tui.transcript.painter import Painter, RowMatches

__all__ = ["Transcript"]

STYLE_NAMES = (
    "title", "detail", "prompt", "plain", "strong", "code", "dim", "added", "removed", "error", "heading",
    "bar", "cursor", "match", "call", "answer",
)  # fmt: skip
MISSING_BODY: Body = (("This message is no longer in the archive.", "dim"),)


class Transcript(ScrollView, can_focus=True):
    """A session with a line cursor."""

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
