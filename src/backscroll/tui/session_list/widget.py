"""Virtualized session list: builds only the visible entries."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from backscroll.render.terminal.width import truncate, wrap_spans
from backscroll.tui.colors import component_styles
from backscroll.tui.session_list.entry import Entry

__all__ = ["SessionList"]

STYLE_NAMES = ("title", "details", "excerpt", "match", "selected", "bar", "notice")
MAX_CACHED_ENTRIES = 512


class SessionList(ScrollView, can_focus=True):
    """Vertical list of entries with one selected entry."""

    COMPONENT_CLASSES = {f"sessions--{name}" for name in STYLE_NAMES}  # noqa: RUF012
    BINDINGS = [  # noqa: RUF012
        Binding("up,k", "move(-1)", "Up"),
        Binding("down,j", "move(1)", "Down"),
        Binding("pageup,ctrl+b,b", "page(-1)", "Page up"),
        Binding("pagedown,ctrl+f,space", "page(1)", "Page down"),
        Binding("home,g", "go_to_edge(-1)", "First"),
        Binding("end,G", "go_to_edge(1)", "Last"),
        Binding("enter,right,l", "open", "Open"),
    ]
    selected_index = reactive(0, repaint=False)

    class Selected(Message):
        """Another entry was selected, or the list has changed."""

    class EndReached(Message):
        """The last entry became visible. Posted once for each list."""

    class Opened(Message):
        """The user opens the selected entry."""

    def __init__(self) -> None:
        super().__init__(id="sessions")
        self._refs: Sequence[str] = ()
        self._make_entry: Callable[[int], Entry] | None = None
        self._entry_height = 2  # lines
        self._notice: Sequence[str] = ()
        self._has_posted_end = False
        self._cached_styles: dict[str, Style] = {}

    def show_entries(
        self,
        refs: Sequence[str],
        make_entry: Callable[[int], Entry],
        *,
        entry_height: int = 2,
        notice: Sequence[str] = (),
        keep_selection: bool = True,
    ) -> None:
        """Replace the entries. `make_entry` builds an entry by index; `notice` replaces an empty list.

        With `keep_selection`, the same session stays selected, on the same line of the screen.
        """
        old_ref = self.selected_ref
        screen_offset = self.selected_index * self._entry_height - self.scroll_offset.y
        self._refs, self._entry_height, self._notice = refs, entry_height, notice
        self._has_posted_end = False
        self._make_entry = lru_cache(maxsize=MAX_CACHED_ENTRIES)(make_entry)
        index = 0
        if keep_selection and old_ref is not None:
            index = self.selected_index
            if index >= len(refs) or refs[index] != old_ref:
                index = next((n for n, ref in enumerate(refs) if ref == old_ref), 0)
        self.virtual_size = Size(self._text_width, len(refs) * entry_height)
        self.selected_index = index
        line = index * entry_height
        self.scroll_to(y=line - screen_offset if keep_selection else 0, animate=False, force=True)
        self._scroll_to_selected()
        self.refresh()
        self.post_message(self.Selected())

    @property
    def selected_ref(self) -> str | None:
        """Return the ref of the selected entry."""
        return self._refs[self.selected_index] if self.selected_index < len(self._refs) else None

    @property
    def entry_count(self) -> int:
        return len(self._refs)

    @property
    def selected_entry(self) -> Entry | None:
        if self._make_entry is None or self.selected_ref is None:
            return None
        return self._make_entry(self.selected_index)

    @property
    def _text_width(self) -> int:
        return max(self.scrollable_content_region.width, 1)

    # --- selection ----------------------------------------------------------------------------------------

    def select(self, index: int) -> None:
        """Select the entry at this index, or the nearest one, and scroll to it."""
        index = min(max(index, 0), max(len(self._refs) - 1, 0))
        if index != self.selected_index:
            self.selected_index = index
            self.post_message(self.Selected())
        self._scroll_to_selected()
        self.refresh()

    def _scroll_to_selected(self) -> None:
        first, end = self.selected_index * self._entry_height, (self.selected_index + 1) * self._entry_height
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if first < top or height <= self._entry_height:
            self.scroll_to(y=first, animate=False, force=True)
        elif end > top + height:
            self.scroll_to(y=end - height, animate=False, force=True)

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(self._text_width, len(self._refs) * self._entry_height)
        self._scroll_to_selected()

    def action_move(self, entries: int) -> None:
        self.select(self.selected_index + entries)

    def action_page(self, pages: int) -> None:
        self.select(self.selected_index + pages * max(self.size.height // self._entry_height - 1, 1))

    def action_go_to_edge(self, direction: int) -> None:
        self.select(len(self._refs) if direction > 0 else 0)

    def action_open(self) -> None:
        if self.selected_ref is not None:
            self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        index = (self.scroll_offset.y + event.y) // self._entry_height
        if index >= len(self._refs):
            return
        was_selected = index == self.selected_index
        self.select(index)
        if was_selected or event.chain > 1:
            self.action_open()

    # --- rendering ----------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._cached_styles = {}

    def _style(self, name: str) -> Style:
        if not self._cached_styles:
            self._cached_styles = component_styles(self, "sessions", STYLE_NAMES)
        return self._cached_styles[name]

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        index, line = divmod(y + self.scroll_offset.y, self._entry_height)
        if self._make_entry is None or index >= len(self._refs):
            notice = self._notice_lines(width - 2)
            text = f" {notice[y]}" if not self._refs and y < len(notice) else ""
            segments = [Segment(text, self._style("notice"))] if text else []
            return Strip(Segment.apply_style(Strip(segments).adjust_cell_length(width), base), width)
        if index + 1 == len(self._refs) and not self._has_posted_end:
            self._has_posted_end = True
            # Deferred: a message posted during rendering bubbles only up to the screen, not to the app.
            self.call_later(self._post_end_reached)
        is_selected = index == self.selected_index
        bar = Segment("▌" if is_selected else " ", self._style("bar"))
        segments = [bar, *self._entry_segments(self._make_entry(index), line, width - 2)]
        strip = Strip(segments).adjust_cell_length(width)
        if is_selected:
            strip = strip.apply_style(self._style("selected"))
        return Strip(Segment.apply_style(strip, base), width)

    def _post_end_reached(self) -> None:
        self.post_message(self.EndReached())

    def _notice_lines(self, width: int) -> list[str]:
        return [line[start:end] for line in self._notice for start, end in wrap_spans(line, max(width, 1))]

    def _entry_segments(self, entry: Entry, line: int, width: int) -> list[Segment]:
        """Return one line of an entry."""
        if line == 0:
            return [Segment(truncate(entry.title, width), self._style("title"))]
        if line == 1:
            return [Segment(truncate(entry.details, width), self._style("details"))]
        text, plain = truncate(entry.excerpt, width), self._style("excerpt")
        segments, offset = [], 0
        for start, end in entry.highlights:
            if start >= len(text):
                break
            segments += [Segment(text[offset:start], plain), Segment(text[start:end], self._style("match"))]
            offset = end
        return [*segments, Segment(text[offset:], plain)]
