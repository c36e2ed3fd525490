"""What was said, of any length: only the lines that are seen are made."""

from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from backscroll.tui.colors import tones_of
from backscroll.tui.transcript.blocks import Block, Place
from backscroll.tui.transcript.finder import finder
from backscroll.tui.transcript.layout import Layout
from backscroll.tui.transcript.painter import Painter

__all__ = ["Transcript"]

_TONES = (
    "title", "fact", "prompt", "plain", "strong", "code", "dim", "added", "removed", "trouble", "head",
    "bar", "cursor", "match", "call", "answer",
)  # fmt: skip


class Transcript(ScrollView, can_focus=True):
    """A session, with a cursor that is moved line by line."""

    COMPONENT_CLASSES = {f"transcript--{tone}" for tone in _TONES}  # noqa: RUF012
    BINDINGS = [  # noqa: RUF012
        Binding("up,k", "move(-1)", "Up"),
        Binding("down,j", "move(1)", "Down"),
        Binding("pageup,ctrl+b,b", "page(-1)", "Page up"),
        Binding("pagedown,ctrl+f,space", "page(1)", "Page down"),
        Binding("home,g", "edge(-1)", "Top"),
        Binding("end,G", "edge(1)", "End"),
        Binding("enter", "fold", "Unfold"),
        Binding("x", "fold_all", "All"),
        Binding("left_square_bracket", "turn(-1)", "Earlier prompt"),
        Binding("right_square_bracket", "turn(1)", "Later prompt"),
    ]
    cursor = reactive(0, repaint=False)

    class Wanted(Message):
        """The body of a block is wanted, which was not read yet."""

        def __init__(self, place: Place) -> None:
            super().__init__()
            self.place = place

    class Refolded(Message):
        """All calls are to be shown whole, or folded again."""

    class Moved(Message):
        """The cursor stands on another line."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self.layout_ = Layout(80)
        self.words = ""  # what is marked
        self.is_complete = True
        self._target: Place | None = None  # to be gone to once it was read
        self._is_end_wanted = False
        self._coming: Layout | None = None  # the same session, while it is read anew
        self._anchor: tuple[tuple[Place, int], int] | None = None  # of a transcript that is read anew
        self._painter_: Painter | None = None  # for the theme and the query of the moment

    # --- what is shown ------------------------------------------------------------------------------------

    def begin(self, *, target: Place | None = None, keeps_place: bool = False) -> None:
        """Make room for a session; with its place kept, for the same one read anew.

        What is shown stays until what is read anew has come to the same place.
        """
        old = self.layout_
        self.is_complete = False
        self._target = target
        self._is_end_wanted = keeps_place and bool(old.blocks) and self.cursor >= old.height - 1
        anchor = old.anchor(self.cursor) if keeps_place else None
        self._anchor = (anchor, self.cursor - self.scroll_offset.y) if anchor is not None else None
        self._coming = Layout(self._columns)
        if keeps_place:
            self._coming.opened = old.opened
            self._coming.is_open_by_default = old.is_open_by_default
            return
        self.cursor = 0
        self._take_over()
        self.scroll_to(0, 0, animate=False)

    def add(self, blocks: list[Block]) -> None:
        """Show more of the session."""
        if self._coming is not None:
            self._coming.add(blocks)
            if self._anchor is not None and self._coming.line_of(self._anchor[0]) is None:
                return
            self._take_over()
        else:
            self.layout_.add(blocks)
        self._resized()
        self._arrive()
        self.refresh()

    def end(self) -> None:
        """All of it is there."""
        self._take_over()
        self.is_complete = True
        if self._is_end_wanted:
            self.action_edge(1)
        self._arrive()
        self._anchor = self._target = None
        self._stand(self.cursor)
        for place in self.layout_.opened:
            number = self.layout_.find(place)
            if number is not None and self.layout_.blocks[number].body is None:
                self.post_message(self.Wanted(self.layout_.blocks[number].place))

    def _take_over(self) -> None:
        """Show what was read anew in the place of what was shown."""
        if self._coming is None:
            return
        is_as_wide = self._coming.width == self._columns
        self.layout_ = self._coming if is_as_wide else self._coming.at(self._columns)
        self._coming = None
        self._resized()

    def tell(self, block: Block) -> None:
        """Show a block in the place of a session."""
        self.begin()
        self.add([block])
        self.end()

    def fill(self, place: Place, block: Block | None) -> None:
        """Put in a body that was read."""
        number = self.layout_.find(place)
        if number is None:
            return
        known = self.layout_.blocks[number]
        body = block.body if block is not None else (("It is no longer in the archive.", "dim"),)
        with_body = Block(
            known.kind, known.place, known.depth, known.turn, known.head, known.aside, known.is_failed,
            known.is_dim, body,
        )  # fmt: skip
        self.layout_.put(number, with_body)
        self._resized()
        if self._target == place:
            self._arrive()
        self.refresh()

    def go_to(self, place: Place) -> None:
        """Move to a message, now or as soon as it was read, and show all of it."""
        self._target = place
        self._arrive()

    def holds(self, ref: str) -> bool:
        """Whether this session, or the one that this subagent belongs to, is shown."""
        return self.layout_.find((ref, -1)) is not None

    def step(self, step: int, places: Sequence[Place]) -> bool:
        """Go to the next line where something is marked, in this block or in one of the places."""
        layout = self.layout_
        if not layout.blocks:
            return False
        here = layout.block_at(self.cursor)
        marked = [line for line in self._marked_lines(here) if (line - self.cursor) * step > 0]
        if marked:
            self._stand(min(marked) if step > 0 else max(marked), is_centred=True)
            return True
        numbers = {layout.find(place) for place in places}
        wanted = [number for number in numbers if number is not None and (number - here) * step > 0]
        if not wanted:
            return False
        self.go_to(layout.blocks[min(wanted) if step > 0 else max(wanted)].place)
        return True

    def _marked_lines(self, number: int) -> list[int]:
        top = self.layout_.top_of(number) - self.layout_.gap(number)
        rows = enumerate(self.layout_.rows_of(number))
        return [top + place for place, row in rows if self._painter.marks(self.layout_, row)]

    def mark(self, words: str) -> None:
        """Mark the words of a query wherever they stand."""
        if words != self.words:
            self.words = words
            self._painter_ = None
            self.refresh()

    def _arrive(self) -> None:
        """Go to where somebody wanted to be, if that was read by now."""
        if self._anchor is not None and (line := self.layout_.line_of(self._anchor[0])) is not None:
            offset, self._anchor = self._anchor[1], None
            if not self._is_end_wanted:
                self.scroll_to(y=line - offset, animate=False, force=True)
                self.cursor = line
        if self._target is None:
            return
        number = self.layout_.find(self._target)
        is_exact = number is not None and self.layout_.blocks[number].place == self._target
        if number is None or not (is_exact or self.is_complete):
            return
        self.layout_.reveal(number)
        block = self.layout_.blocks[number]
        if not self.layout_.is_open(number):
            self.layout_.toggle(number)
        self._resized()
        if block.body is None:
            self.post_message(self.Wanted(block.place))
            self._stand(self.layout_.top_of(number), is_centred=True)
            return
        self._target = None
        self._stand(self._first_match(number), is_centred=True)

    def _first_match(self, number: int) -> int:
        """The line of a block where something is marked, or its first."""
        return next(iter(self._marked_lines(number)), self.layout_.top_of(number))

    # --- layout -------------------------------------------------------------------------------------------

    @property
    def _columns(self) -> int:
        return max(self.scrollable_content_region.width, 1)

    def _resized(self) -> None:
        self.virtual_size = Size(self._columns, self.layout_.height)

    def on_resize(self, event: events.Resize) -> None:
        if self.layout_.width == self._columns:
            return
        anchor, offset = self.layout_.anchor(self.cursor), self.cursor - self.scroll_offset.y
        self.layout_ = self.layout_.at(self._columns)
        self._resized()
        if anchor is not None and (line := self.layout_.line_of(anchor)) is not None:
            self.cursor = line
            self.scroll_to(y=line - min(offset, max(self.size.height - 1, 0)), animate=False, force=True)
        self.refresh()

    # --- moving -------------------------------------------------------------------------------------------

    def _stand(self, line: int, *, is_centred: bool = False) -> None:
        """Put the cursor on a line and have it seen."""
        line = min(max(line, 0), max(self.layout_.height - 1, 0))
        self.cursor = line
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if is_centred and not top + 1 <= line < top + height - 1:
            self.scroll_to(y=max(line - height // 3, 0), animate=False, force=True)
        elif line < top:
            self.scroll_to(y=line, animate=False, force=True)
        elif line >= top + height:
            self.scroll_to(y=line - height + 1, animate=False, force=True)
        self.refresh()

    def watch_cursor(self, old: int, new: int) -> None:
        self.post_message(self.Moved())

    def action_move(self, lines: int) -> None:
        top = self.scroll_offset.y
        # The wheel moves what is seen and not the cursor; it goes on from what is seen.
        seen = min(max(self.cursor, top), top + max(self.size.height - 1, 0))
        self._stand(self.cursor + lines if seen == self.cursor else seen)

    def action_page(self, pages: int) -> None:
        height = max(self.size.height - 1, 1)
        self.scroll_to(y=self.scroll_offset.y + pages * height, animate=False, force=True)
        self._stand(self.cursor + pages * height)

    def action_edge(self, side: int) -> None:
        self._is_end_wanted = side > 0 and not self.is_complete
        self._stand(self.layout_.height if side > 0 else 0)

    def action_turn(self, step: int) -> None:
        """Go to the next prompt, or the one before."""
        layout = self.layout_
        if not layout.blocks:
            return
        number = layout.block_at(self.cursor)
        while 0 <= (number := number + step) < len(layout.blocks):
            if layout.blocks[number].turn and layout.blocks[number].kind == "prompt":
                line = layout.top_of(number)
                self.scroll_to(y=line, animate=False, force=True)
                self._stand(line)
                return
        self.action_edge(step)

    def on_click(self, event: events.Click) -> None:
        line = self.scroll_offset.y + event.y
        row = self.layout_.row(line)
        if row is None:
            return
        self._stand(line)
        if row.part == "head" and self.layout_.blocks[row.block].is_foldable:
            self.action_fold()

    # --- folding ------------------------------------------------------------------------------------------

    @property
    def current(self) -> Block | None:
        """The block that the cursor stands on."""
        return self.layout_.blocks[self.layout_.block_at(self.cursor)] if self.layout_.blocks else None

    def action_fold(self) -> None:
        """Show all of what the cursor stands on, or only its head."""
        block = self.current
        if block is None or not block.is_foldable:
            return
        number = self.layout_.block_at(self.cursor)
        self.layout_.toggle(number)
        if self.layout_.is_open(number) and block.body is None:
            self.post_message(self.Wanted(block.place))
        self._resized()
        self._stand(self.layout_.top_of(number))

    def action_fold_all(self) -> None:
        self.layout_.opened = {place for place in self.layout_.opened if place[1] < 0}  # only subagents
        self.layout_.is_open_by_default ^= {"call", "thinking"}
        self.post_message(self.Refolded())

    # --- painting -----------------------------------------------------------------------------------------

    @property
    def _painter(self) -> Painter:
        if self._painter_ is None:
            self._painter_ = Painter(finder(self.words), tones_of(self, "transcript", _TONES))
        return self._painter_

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painter_ = None

    def render_line(self, y: int) -> Strip:
        line = y + self.scroll_offset.y
        width = self.size.width
        row = self.layout_.row(line) if self.layout_.blocks else None
        base = self.rich_style
        if row is None:
            return Strip.blank(width, base)
        segments = list(self._painter.paint(self.layout_, row))
        strip = Strip(segments).adjust_cell_length(width)
        if line == self.cursor and self.has_focus:
            strip = strip.apply_style(self._painter.style("cursor"))
        return Strip(Segment.apply_style(strip, base), width)
